"""Our protos against XLA's: every .pb is rewritten by us; XLA loads and saves
the original and ours, and the two must be equal byte for byte. Also: before.pb and before.hlo have one fingerprint, and a text turned
into a proto by us says in XLA's words what XLA read from the text.

usage: proto_roundtrip.py PB_TOOL DIRECTORY [substring]
"""
import os
import re
import subprocess
import sys
import tempfile

try:
  from jaxlib import _hlo
except ImportError:
  sys.exit(77)


def field(data, number):
  """The first length-delimited field of that number."""
  p = 0
  while p < len(data):
    tag, p = varint(data, p)
    if tag & 7 == 2:
      n, p = varint(data, p)
      if tag >> 3 == number:
        return data[p:p + n]
      p += n
    elif tag & 7 == 0:
      _, p = varint(data, p)
    else:
      p += 8 if tag & 7 == 1 else 4
  return None


def varint(data, p):
  v = s = 0
  while True:
    b = data[p]
    p += 1
    v |= (b & 127) << s
    s += 7
    if b < 128:
      return v, p


def load(data):
  try:
    return _hlo.HloModule.from_serialized_hlo_module_proto(data)
  except Exception:  # an HloProto
    return _hlo.HloModule.from_serialized_hlo_module_proto(field(data, 1))


def without_id(data):
  """Drops field 5, which XLA numbers anew for each module it makes."""
  p, out = 0, b""
  while p < len(data):
    start = p
    tag, p = varint(data, p)
    if tag & 7 == 2:
      n, p = varint(data, p)
      p += n
    else:
      _, p = varint(data, p)
    if tag >> 3 != 5:
      out += data[start:p]
  return out


def same(a, b):
  x, y = (without_id(load(d).as_serialized_hlo_module_proto()) for d in (a, b))
  return x == y


def rewrite(tool, mode, path, out):
  r = subprocess.run([tool, mode, path, out], capture_output=True, text=True)
  return r.stderr.strip() if r.returncode else ""


def fingerprints(tool, paths):
  r = subprocess.run([tool, "fp"] + paths, capture_output=True, text=True)
  return [line.split()[0] for line in r.stdout.splitlines()]


def text_of(module):
  """XLA's text parser reads -0 as 0 and forgets a constant's element size; ours
  keeps both."""
  text = module.to_string().split("\n", 1)[1]
  text = re.sub(r":E\(\d\)(?=\} constant)", "", text)
  return re.sub(r"(?<![\w.])-0(?![\w.])", "0", text)


def text_to_proto(tool, path, out):
  source = open(path).read()
  if "({...})" in source:
    return ""
  why = rewrite(tool, "toproto", path, out)
  if why:
    return why
  try:
    want = text_of(_hlo.hlo_module_from_text(source))
  except Exception:
    return ""  # XLA does not read this text
  try:
    got = text_of(load(open(out, "rb").read()))
  except Exception as e:
    return "XLA refuses ours: " + str(e)[:300]
  return "" if got == want else "the proto says something else"


def main():
  tool, root = sys.argv[1], sys.argv[2]
  only = sys.argv[3] if len(sys.argv) > 3 else ""
  total = bad = texts = bad_texts = 0
  with tempfile.TemporaryDirectory() as tmp:
    out = os.path.join(tmp, "out.pb")
    for folder, _, files in sorted(os.walk(root)):
      for name in sorted(files):
        path = os.path.join(folder, name)
        if only not in path:
          continue
        if name.endswith(".hlo"):
          texts += 1
          why = text_to_proto(tool, path, out)
          if why:
            bad_texts += 1
            print(f"{path}: {why}")
        if not name.endswith(".pb"):
          continue
        total += 1
        why = rewrite(tool, "rewrite", path, out)
        if not why:
          original = open(path, "rb").read()
          try:
            if not same(original, open(out, "rb").read()):
              why = "differs"
          except Exception as e:
            why = "XLA refuses ours: " + str(e)[:300]
        text = path[:-3] + ".hlo"
        if not why and os.path.exists(text) and "({...})" not in open(text).read():
          prints = fingerprints(tool, [path, text])
          if len(prints) != 2 or prints[0] != prints[1]:
            why = "text and proto have different fingerprints"
        if why:
          bad += 1
          print(f"{path}: {why}")
  print(f"{total - bad} of {total} protos round-trip")
  print(f"{texts - bad_texts} of {texts} texts become what XLA reads in them")
  sys.exit(bad + bad_texts != 0)


if __name__ == "__main__":
  main()
