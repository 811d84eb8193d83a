"""Shape inference against XLA's text parser on random instructions: those that
XLA accepts must get the same shape, layout and dynamic dimensions from us.
Where only one side accepts, ours must be the stricter, and only for batching
dimensions of gather and scatter (which XLA 0.10.2 does not check). Negative
window padding is left out: XLA dies of some.

usage: infer_random.py PB_TOOL [seed] [count]
"""
import os
import random
import re
import subprocess
import sys
import tempfile

try:
  from jaxlib import _hlo
except ImportError:
  sys.exit(77)

MODULE = """HloModule case%d
add {
 x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y)
}
ENTRY e {
 p = %s parameter(0)
 q = %s parameter(1)
 i = %s parameter(2)
 zero = f32[] constant(0)
 ROOT result = %s
}
"""
rand = random.randint


def dims(n, low=1, high=5):
  return [rand(low, high) for _ in range(n)]


def shape(d, kind="f32"):
  """With a random layout and now and then a dynamic dimension."""
  if not d:
    return kind + "[]"
  order = random.sample(range(len(d)), len(d))
  sizes = ",".join(("<=" if rand(1, 10) == 1 else "") + str(v) for v in d)
  return "%s[%s]{%s}" % (kind, sizes, ",".join(map(str, order)))


def braces(v):
  return "{" + ",".join(map(str, v)) + "}"


def window(n, sizes=None):
  parts = ["size=" + "x".join(map(str, sizes or dims(n, 1, 4)))]
  if rand(0, 1):
    parts.append("stride=" + "x".join(map(str, dims(n, 1, 3))))
  if rand(0, 1):
    pads = ["%d_%d" % (rand(0, 2), rand(0, 2)) for _ in range(n)]
    parts.append("pad=" + "x".join(pads))
  if rand(0, 1):
    parts.append("lhs_dilate=" + "x".join(map(str, dims(n, 1, 3))))
  if rand(0, 1):
    parts.append("rhs_dilate=" + "x".join(map(str, dims(n, 1, 3))))
  return "window={%s}" % " ".join(parts)


def convolution():
  n, b, f, groups = rand(0, 2), rand(1, 4), rand(1, 4), random.choice([1, 1, 2])
  p = [b * rand(1, 2)] + dims(n, 1, 6) + [f * groups]
  kernel = dims(n, 1, 3)
  q = kernel + [f if rand(1, 9) > 1 else rand(1, 3), rand(1, 3) * groups]
  s = "".join(map(str, range(n)))
  text = "convolution(p, q)"
  if n:
    text += ", " + window(n, kernel)
  text += ", dim_labels=b%sf_%sio->b%sf" % (s, s, s)
  if groups > 1:
    text += ", feature_group_count=%d" % groups
  if rand(1, 7) == 1:
    text += ", batch_group_count=2"
  return p, q, [], text


def dot():
  nb, nc = rand(0, 2), rand(0, 2)
  p, q = dims(nb + nc + rand(0, 2), 1, 3), dims(nb + nc + rand(0, 2), 1, 3)
  a, b = random.sample(range(len(p)), nb + nc), random.sample(
      range(len(q)), nb + nc)
  for x, y in zip(a, b):
    if rand(1, 20) > 1:
      q[y] = p[x]
  return p, q, [], (
      "dot(p, q), lhs_batch_dims=%s, lhs_contracting_dims=%s, "
      "rhs_batch_dims=%s, rhs_contracting_dims=%s" % (
          braces(a[:nb]), braces(a[nb:]), braces(b[:nb]), braces(b[nb:])))


def indexed():
  """Gather, or scatter with updates that mostly fit."""
  p, index = dims(rand(1, 4)), dims(rand(0, 3), 1, 3)
  n, vector = len(p), rand(0, len(index))
  k = min(index[vector] if vector < len(index) else 1, n)
  if vector < len(index):
    index[vector] = k
  mapped = random.sample(range(n), k)
  batch = [x for x in range(len(index)) if x != vector]
  free = [x for x in range(n) if x not in mapped]
  ob, ib = [], []
  if free and batch and rand(0, 2) == 0:
    ob, ib = [random.choice(free)], [random.choice(batch)]
    index[ib[0]] = p[ob[0]]
  rest = [x for x in range(n) if x not in ob]
  gone = sorted(random.sample(rest, rand(0, len(rest))))
  sizes = [1 if x in gone or x in ob else rand(0, p[x]) for x in range(n)]
  kept = [x for x in range(n) if x not in gone and x not in ob]
  total = len(batch) + len(kept)
  where = sorted(random.sample(range(total), len(kept)))
  if rand(0, 1):
    return p, [1], index, (
        "gather(p, i), offset_dims=%s, collapsed_slice_dims=%s, "
        "start_index_map=%s, operand_batching_dims=%s, "
        "start_indices_batching_dims=%s, index_vector_dim=%d, slice_sizes=%s" %
        (braces(where), braces(gone), braces(mapped), braces(ob), braces(ib),
         vector, braces(sizes)))
  windows, batches = iter(kept), iter(batch)
  q = [sizes[next(windows)] if x in where else index[next(batches)]
       for x in range(total)]
  return p, q, index, (
      "scatter(p, i, q), update_window_dims=%s, inserted_window_dims=%s, "
      "scatter_dims_to_operand_dims=%s, input_batching_dims=%s, "
      "scatter_indices_batching_dims=%s, index_vector_dim=%d, to_apply=add" %
      (braces(where), braces(gone), braces(mapped), braces(ob), braces(ib),
       vector))


def simple():
  p = dims(rand(1, 4))
  n = len(p)
  order = random.sample(range(n), n)
  along = rand(0, n - 1)
  q = list(p)
  q[along] = rand(0, 4)
  pads = ["%d_%d_%d" % (rand(-2, 3), rand(-2, 3), rand(0, 2)) for _ in p]
  text = random.choice([
      "reduce-window(p, zero), %s, to_apply=add" % window(n),
      "pad(p, zero), padding=" + "x".join(pads),
      "transpose(p), dimensions=" + braces(order),
      "reduce(p, zero), dimensions=%s, to_apply=add" % braces(
          order[:rand(0, n)]),
      "concatenate(p, q, p), dimensions={%d}" % along,
      "fft(p), fft_type=RFFT, fft_length={%d}" % (p[-1] + (rand(1, 9) == 1)),
      "reverse(p), dimensions=" + braces(order[:rand(0, n)]),
  ])
  return p, q, [], text


def shapes_of(tool, folder, count):
  paths = [os.path.join(folder, "%d.hlo" % k) for k in range(count)]
  r = subprocess.run([tool, "totext"] + paths, capture_output=True, text=True)
  found = {}
  for part in r.stdout.split("HloModule case")[1:]:
    k = int(re.match(r"\d+", part).group())
    found[k] = re.search(r"ROOT %result = (.*?) [\w-]+\(", part).group(1)
  return found


def xla_shape(text):
  try:
    out = _hlo.hlo_module_from_text(text).to_string()
  except Exception:
    return None
  return re.search(r"ROOT %result = (.*?) [\w-]+\(", out).group(1)


def main():
  tool = sys.argv[1]
  random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
  count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
  accepted = bad = 0
  with tempfile.TemporaryDirectory() as folder:
    texts = []
    for k in range(count):
      p, q, i, inst = random.choice([convolution, dot, indexed, simple])()
      texts.append(MODULE % (k, shape(p), shape(q), shape(i, "s32"), inst))
      with open(os.path.join(folder, "%d.hlo" % k), "w") as f:
        f.write(texts[-1])
    ours = shapes_of(tool, folder, count)
    for k, text in enumerate(texts):
      want, got = xla_shape(text), ours.get(k)
      accepted += want is not None
      stricter = got is None and re.search(r"batching_dims=\{\d", text)
      if want != got and not stricter:
        bad += 1
        print(text, "XLA:", want, "ours:", got)
  print(f"{count} instructions, {accepted} accepted by XLA, {bad} differ")
  sys.exit(bad != 0 or accepted < count // 2)


if __name__ == "__main__":
  main()
