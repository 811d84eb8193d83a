#!/bin/sh
# Makes a fresh Debian 12 ready: packages, and for the tests a Python
# environment in .venv with the peer (jaxlib) and lit.
#   tools/setup.sh build     what building and running need
#   tools/setup.sh check     also what the tests need
set -eu
cd "$(dirname "$0")/.."

build="gcc g++ cmake ninja-build llvm-19-dev libzip-dev libcjson-dev
  liblapacke-dev liblapack-dev libblas-dev libgfortran-12-dev libkissfft-dev
  libhwloc-dev libsqlite3-dev graphviz"
check="$build git clang-19 clang-format-19 libclang-rt-19-dev llvm-19-tools
  libcmocka-dev libmpfr-dev libgmp-dev python3-venv chromium
  fonts-dejavu-core"

# Not one apt call when everything is there: works offline and as any user.
need() {
  want=""
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok" ||
      want="$want $p"
  done
  [ -z "$want" ] && return 0
  run=""
  [ "$(id -u)" = 0 ] || run="sudo"
  echo "installing:$want" >&2
  $run env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
  # shellcheck disable=SC2086
  $run env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $want >&2
}

case "${1:-build}" in
  build) need $build ;;
  check)
    need $check
    if ! .venv/bin/python -c 'import jaxlib, lit, playwright' 2>/dev/null; then
      python3 -m venv .venv
      .venv/bin/pip install -q jax==0.10.2 scipy lit playwright
    fi
    ;;
  *) echo "usage: tools/setup.sh build|check" >&2; exit 2 ;;
esac
