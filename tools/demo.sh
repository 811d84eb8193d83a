#!/bin/sh
# The main road on a real program: JAX's attention (the twin of the chapter's
# dump): instructions before, kernels after, bytes kept off DRAM, times with
# spread, bits equal, the diff, and the next command to type.
#   tools/demo.sh LAWSON [MODULE]
set -eu
lawson=$1
here=tests/data/corpus/attn_f32_64x64
[ -d "$here" ] || here=$(dirname "$0")/../$here
module=${2:-$here/before.hlo}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$1"; }

say "1. The program, and what fusing it does (lawson opt)"
"$lawson" opt "$module" --fusion=none -o "$tmp/none.hlo" 2>/dev/null
"$lawson" opt "$module" --fusion=priority -o "$tmp/fused.hlo" --report

say "2. The same bits, however it runs (lawson verify)"
"$lawson" verify "$module"

say "3. Against JAX's own results (lawson run --expect)"
if [ -f "$(dirname "$module")/inputs.npz" ]; then
  "$lawson" run "$module" --inputs "$(dirname "$module")/inputs.npz" \
    --expect "$(dirname "$module")/outputs.npz"
fi

say "4. Times: unfused and fused, taken in turns (lawson run --repeat)"
for road in none priority none priority; do
  printf '%-9s' "$road"
  "$lawson" run "$module" --fusion=$road --repeat=200 --brief
done

say "5. What changed (lawson diff unfused fused)"
"$lawson" diff "$tmp/none.hlo" "$tmp/fused.hlo" | sed -n 1,7p

say "Next"
echo "$lawson opt $module --fusion=xla --dump-kernels -o -"
