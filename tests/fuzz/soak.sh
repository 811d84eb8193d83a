#!/bin/sh
# Runs one fuzzer for LW_FUZZ_SECONDS (600): from the inputs kept in the project
# and the small texts and protos of tests/data. What breaks stays in the folder
# it is run in, as crash-*.
#   soak.sh FUZZER KEPT DATA
set -eu
name=$(basename "$1")
mkdir -p "soak-$name" "seeds-$name"
case $name in
  fuzz_text) suffix=.hlo ;;
  fuzz_proto) suffix=.pb ;;
  *) suffix=.none ;;
esac
find "$3" -name "*$suffix" -size -24k | while read -r file; do
  cp "$file" "seeds-$name/$(echo "$file" | cksum | cut -d' ' -f1)"
done
exec "$1" -max_total_time="${LW_FUZZ_SECONDS:-600}" -timeout=60 \
  -rss_limit_mb=3000 -max_len=20000 -reload=0 -print_final_stats=1 \
  "soak-$name" "$2" "seeds-$name"
