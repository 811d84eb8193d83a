#!/bin/sh
# Makes the pages of this folder again.
#   docs/gallery/make.sh LAWSON
# XLA:CPU's is compiled by the jaxlib that is set up (lawson setup xla-cpu);
# XLA:GPU's comes from the dump in tests/data, made without a GPU.
set -eu
lawson=$1
cd "$(dirname "$0")/../.."
out=docs/gallery
module=tests/data/corpus/attn_f32_64x64/before.dump.txt
gpu=tests/data/gpu/attn_f32_64x64/gpu_plain

"$lawson" xray "$module" --target=cpu-generic -o $out/attention-lawson.html
"$lawson" xray --compiler=xla --target=h100 --before=$gpu/fusion_in.pb \
  --after=$gpu/fusion_out.hlo --decisions=$gpu/decisions.tsv \
  -o $out/attention-xla-gpu.html
"$lawson" xray "$module" --compiler=xla -o $out/attention-xla-cpu.html
