#!/usr/bin/env python3
"""The chapter's ablation, reproduced with libtpu 0.0.52 for a v6e.

  tpu_chapter.py LAWSON

Attention, 2048x128 bf16: of the five stages with fusion in their name only
tpu_fusion moves the module; the flag takes a misspelt name in silence and
lawson refuses it; libtpu puts a call of its own in place of the softmax, which
is told apart from fusion. Exit 77 ("not tested") where `lawson setup xla-tpu`
has not been run."""
import json
import os
import pathlib
import subprocess
import sys

LAWSON = os.path.abspath(sys.argv[1])
ATTENTION = str(pathlib.Path(__file__).resolve().parent.parent / "data" /
                "corpus" / "attn_bf16_2048x128" / "before.hlo")
FOR_TPU = ["--compiler=xla", "--target=v6e"]
failed = []


def lawson(*words):
    done = subprocess.run([LAWSON, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def expect(condition, what):
    if not condition:
        failed.append(what)
        print("FAILED:", what)


code, out, _ = lawson("setup", "--json")
ready = {s["name"] for s in json.loads(out)["setups"] if s["ready"]}
if "xla-tpu" not in ready or os.environ.get("LAWSON_PYTHON"):
    print("not tested: xla-tpu is not set up (lawson setup xla-tpu)")
    sys.exit(77)

# ---- the chapter's five ----
code, out, err = lawson("passes", ATTENTION, *FOR_TPU, "--grep=fusion",
                        "--json")
expect(code == 0, err)
rows = json.loads(out)["passes"]
kinds = {row["name"]: row["kind"] for row in rows}
for name, kind in (("tpu_fusion", "pass"), ("tpu_multi_output_fusion", "pass"),
                   ("fusion", "pass"), ("async-collective-fusion", "pass"),
                   ("Main fusion", "pipeline")):
    expect(kinds.get(name) == kind, f"{name} is {kinds.get(name)}")
expect(not any(r["changed"] for r in rows if r["name"] == "fusion"),
       "fusion changes nothing, so that no dump names it")

# ---- left out one by one ----
code, out, err = lawson(
    "ablate", ATTENTION, *FOR_TPU, "--json", "--disable=tpu_fusion,"
    "main_fusion,fusion,async-collective-fusion,tpu_multi_output_fusion")
expect(code == 0, err)
found = json.loads(out)
rows = {row["name"]: row for row in found["rows"]}
expect("libtpu 0.0.52" in found["version"], found["version"])
expect(found["control"] == "SAME", "the control moved")
for name in ("Main fusion", "fusion", "async-collective-fusion",
             "tpu_multi_output_fusion"):
    expect(rows[name]["verdict"] == "RAN and moved nothing", rows[name])
    expect(rows[name]["runs"] > 0, rows[name])
expect(not any(row["ignored"] for row in rows.values()),
       "libtpu obeys the flag, pipelines' names too")
expect(rows["tpu_fusion"]["verdict"] == "MOVED", rows["tpu_fusion"])
full, without = found["full"], rows["tpu_fusion"]["without"]
expect(full["fusions"] == 3 and without["fusions"] == 1, (full, without))
expect(full["instructions"] - without["instructions"] == 3, (full, without))
expect(any("online-softmax" in text for text in found["replaced"]),
       found["replaced"])

# ---- a name that is none ----
code, out, err = lawson("ablate", ATTENTION, *FOR_TPU,
                        "--disable=tpu_fusoin")
expect(code == 2 and 'did you mean "tpu_fusion"?' in err, (code, err))

print("failed:", len(failed))
sys.exit(1 if failed else 0)
