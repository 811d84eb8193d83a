#!/usr/bin/env python3
"""XLA's published fusion cases, restated as small modules of our own.

restated.py LAWSON [FOLDER [NAME...]]

Each module of FOLDER (default: restated/ beside this file) begins with comments:

  // TARGET: NAME [KEY=VALUE...]   its device, with numbers changed
  // PASSES: ...                   only these steps of XLA's fusion pipeline
  // UNCHANGED                     the module comes out as it went in
  // FUSIONS: N                    fusions in the entry computation
  // HAS: RE, NOT: RE              in the printed module
  // NOT-ENTRY: RE                 in its entry computation
  // COUNT: N RE                   that often in the printed module
  // REDUCES-A-FUSION: N           in each fused computation, at most

It goes through lawson opt --fusion=xla --only-fusion; what is not as stated is
printed. Exit 3 then."""
import os
import re
import subprocess
import sys
import tempfile

KEYS = "TARGET|PASSES|UNCHANGED|FUSIONS|HAS|NOT|NOT-ENTRY|COUNT|REDUCES-A-FUSION"
HERE = os.path.dirname(os.path.abspath(__file__))


def device(tool, words, scratch):
    """A built-in target's name, or a file of it with numbers changed."""
    if not words[1:]:
        return words[0]
    text = subprocess.run([tool, "targets", words[0]], capture_output=True, text=True, check=True).stdout
    for word in words[1:]:
        key, value = word.split("=")
        text, n = re.subn(rf"^{key} = \S+", f"{key} = {value}", text, flags=re.M)
        assert n == 1, key
    path = os.path.join(scratch, "device.target")
    with open(path, "w") as file:
        file.write(text)
    return path


def entry_of(text):
    return text[text.index("\nENTRY"):]


def fused(text):
    """The bodies of fused computations."""
    names = set(re.findall(r"fusion\(.*calls=%?([\w.-]+)", text))
    for m in re.finditer(r"^%?([\w.-]+) .*\{\n((?:  .*\n)*)\}", text, re.M):
        if m[1] in names:
            yield m[2]


def holds(key, value, tool, source, out):
    """None, or what is there instead."""
    text = open(out).read()
    if key == "UNCHANGED":
        run = subprocess.run([tool, "diff", source, out], capture_output=True, text=True)
        return None if run.returncode == 0 else run.stdout[:300]
    if key in ("HAS", "NOT"):
        return None if bool(re.search(value, text)) == (key == "HAS") else "the module"
    if key == "NOT-ENTRY":
        return "the entry computation" if re.search(value, entry_of(text)) else None
    if key == "FUSIONS":
        count = len(re.findall(r" fusion\(", entry_of(text)))
        return None if count == int(value) else str(count)
    if key == "COUNT":
        wanted, pattern = value.split(" ", 1)
        count = len(re.findall(pattern, text))
        return None if count == int(wanted) else str(count)
    if key == "REDUCES-A-FUSION":
        most = max(len(re.findall(r" reduce\(", body)) for body in fused(text))
        return None if most <= int(value) else str(most)
    raise ValueError(key)


def check(tool, source):
    head = re.findall(rf"^// ({KEYS})(?:: (.*))?$", open(source).read(), re.M)
    facts = dict(h for h in head if h[0] in ("TARGET", "PASSES"))
    stated = [h for h in head if h[0] not in ("TARGET", "PASSES")]
    assert stated, source
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out.hlo")
        command = [tool, "opt", source, "--fusion=xla", "--only-fusion", "-o", out,
                   "--target=" + device(tool, facts["TARGET"].split(), scratch)]
        if "PASSES" in facts:
            command.append("--passes=" + facts["PASSES"])
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return [run.stderr[:300]]
        found = [(key, value, holds(key, value, tool, source, out)) for key, value in stated]
        return [f"stated {key} {value}, found {there}" for key, value, there in found if there is not None]


def main():
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "restated")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".hlo"))
    names = [n for n in names if not sys.argv[3:] or any(w in n for w in sys.argv[3:])]
    bad = 0
    for name in names:
        problems = check(sys.argv[1], os.path.join(folder, name))
        bad += bool(problems)
        for problem in problems:
            print(f"{name}: {problem}")
    print(f"as stated: {len(names) - bad}/{len(names)}")
    return 3 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
