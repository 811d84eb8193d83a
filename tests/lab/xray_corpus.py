#!/usr/bin/env python3
"""X-rays of 20 corpus modules by three compilers: every page is made, its model
is whole, its head agrees with what the compiler's modules say.

  xray_corpus.py LAWSON [--cpu-python=P] [--gpu-python=P] [--count=N]

A module that XLA itself refuses is said, with its words. XLA runs in the Python given, else in what `lawson setup` made; a compiler that
is not there is said and left out.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "corpus")
MISSING = 4


def modules(count):
    names = sorted(n for n in os.listdir(DATA)
                   if os.path.exists(f"{DATA}/{n}/before.hlo") and
                   not n.startswith("shard_"))
    step = max(1, len(names) // count)
    return names[::step][:count]


def check(path, compiler):
    page = open(path, encoding="utf-8").read()
    m = json.loads(re.search(r'id="model">(.*?)</script>', page, re.S)[1])
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", page.replace(
        re.search(r'id="model">(.*?)</script>', page, re.S)[1], "")), path
    assert m["layout"]["boxes"]["places"], path
    runs = sum(b.get("runs", False) for b in m["boxes"])
    assert runs == m["head"]["kernels_after"], (path, runs, m["head"])
    nodes = len(m["nodes"])
    assert all(0 <= e["from"] < nodes and 0 <= e["to"] < nodes for e in m["edges"])
    if compiler == "lawson":
        assert m["label"] == "RECORDED", path
        assert all(d["support"] == "recorded" for d in m["decisions"])
    judged = [d for d in m["decisions"] if d["support"] != "recorded"]
    return len(m["decisions"]), sum(d["support"] == "differs" for d in judged), \
        sum(d["support"] == "silent" for d in judged)


def main():
    lawson = sys.argv[1]
    options = dict(a[2:].split("=", 1) for a in sys.argv[2:])
    names = modules(int(options.get("count", 20)))
    compilers = {"lawson": [], "xla cpu": ["--compiler=xla"],
                 "xla h100": ["--compiler=xla", "--target=h100"]}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler, flags in compilers.items():
            env = dict(os.environ)
            python = options.get({"xla cpu": "cpu-python",
                                  "xla h100": "gpu-python"}.get(compiler))
            if python:
                env["LAWSON_PYTHON"] = python
            total = [0, 0, 0]
            for name in names:
                path = f"{folder}/{name}.html"
                r = subprocess.run([lawson, "xray", f"{DATA}/{name}/before.hlo",
                                    *flags, "-o", path], env=env,
                                   capture_output=True, text=True)
                if r.returncode == MISSING:
                    print(f"{compiler}: {r.stderr.strip()}")
                    break
                if r.returncode:
                    print(f"{compiler} {name}: exit {r.returncode}: {r.stderr.strip()}")
                    bad += "xla refuses" not in r.stderr
                    continue
                total = [a + b for a, b in zip(total, check(path, compiler))]
            else:
                print(f"{compiler}: {len(names)} modules, {total[0]} verdicts, our "
                      f"rules differ on {total[1]}, are silent on {total[2]}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
