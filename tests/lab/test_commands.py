#!/usr/bin/env python3
"""ablate, passes, diff, capture and setup, with no XLA in sight.

  test_commands.py LAWSON
"""
import json
import os
import subprocess
import sys
import tempfile

LAWSON = os.path.abspath(sys.argv[1])
SOFTMAX = """HloModule softmax

mx { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sm { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[64,128] parameter(0)
  ninf = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[64] reduce(x, ninf), dimensions={1}, to_apply=mx
  topb = f32[64,128] broadcast(top), dimensions={0}
  low = f32[64,128] subtract(x, topb)
  ex = f32[64,128] exponential(low)
  sum = f32[64] reduce(ex, zero), dimensions={1}, to_apply=sm
  sumb = f32[64,128] broadcast(sum), dimensions={0}
  ROOT y = f32[64,128] divide(ex, sumb)
}
"""
failed = []
tmp = tempfile.mkdtemp()
env = {k: v for k, v in os.environ.items() if k != "LAWSON_PYTHON"}
env["XDG_DATA_HOME"] = tmp + "/data"


def expect(condition, what):
    if not condition:
        failed.append(what)
        print("FAILED:", what)


def write(name, text, mode=0o644):
    path = os.path.join(tmp, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def run(code, *words, says="", more=None, cwd=tmp):
    done = subprocess.run([LAWSON, *words], capture_output=True, text=True,
                          env={**env, **(more or {})}, cwd=cwd)
    said = done.stdout + done.stderr
    expect(done.returncode == code and says in said,
           f"{' '.join(words)}: {done.returncode}, not {code}, or lacks "
           f"{says!r}:\n{said[-800:]}")
    return done.stdout


def data(code, *words, **more):
    return json.loads(run(code, *words, "--json", **more) or "{}")


module = write("softmax.hlo", SOFTMAX)

# ---- ablate: the four verdicts ----
run(2, "ablate", module, "--disable=priority-fusin",
    says='did you mean "priority-fusion"?')
run(2, "ablate", module, says="--edges")
run(2, "ablate", module, "--edges", "--disable=cse")
found = data(0, "ablate", module,
             "--disable=priority-fusion,fusion,call-inliner,cse")
rows = {row["name"]: row for row in found["rows"]}
expect(found["control"] == "SAME" and found["replaced"] == [], found)
expect(rows["priority-fusion"]["verdict"] == "MOVED", rows)
expect(rows["priority-fusion"]["bits"] == "SAME", rows)
expect(rows["priority-fusion"]["without"]["kernels"]
       > found["full"]["kernels"], rows)
expect(rows["fusion"]["verdict"] == "NOT RUN", rows)
expect(rows["call-inliner"]["verdict"] == "RAN and moved nothing", rows)
expect(rows["call-inliner"]["runs"] > 0, rows)
# The numbers are those of opt and diff.
report = data(0, "opt", module, "--disable=priority-fusion")
expect(report["kernels"] == rows["priority-fusion"]["without"]["kernels"],
       report["kernels"])
run(0, "opt", module, "-o", tmp + "/with.hlo")
run(0, "opt", module, "--disable=priority-fusion", "-o", tmp + "/without.hlo")
sides = data(3, "diff", tmp + "/with.hlo", tmp + "/without.hlo")
for side, numbers in (("a", found["full"]),
                      ("b", rows["priority-fusion"]["without"])):
    for key in ("instructions", "fusions", "custom_calls"):
        expect(sides[side][key] == numbers[key], (side, key))

every = data(0, "ablate", module, "--disable=all")
ran = data(0, "passes", module)["passes"]
names = {row["name"] for row in ran if row["kind"] == "pass"}
expect({row["name"] for row in every["rows"]} == names, "all is all that ran")
for row in every["rows"]:
    changed = any(r["changed"] for r in ran if r["name"] == row["name"])
    expect(changed == (row["changed_runs"] > 0), row)
    if not changed:
        expect(row["verdict"] == "RAN and moved nothing", row)

edges = data(0, "ablate", module, "--edges")["rows"]
fused = [e for e in data(0, "explain", module)["edges"]
         if e["verdict"] == "fused"]
expect({e["name"] for e in edges}
       == {f"{e['value']} > {e['reader']}" for e in fused}, edges)
expect(any(e["verdict"] == "MOVED" for e in edges), edges)
expect(all(e["bits"] == "SAME" for e in edges if e["verdict"] == "MOVED"),
       edges)

# ---- bisect: the rewrite, and the smallest program ----
found = data(0, "ablate", module, "--disable=cse,algebraic-simplifier",
             "--allow-inexact=reciprocal", "--bisect")
small = found["bisect"]
expect(small["name"] == "algebraic-simplifier" and small["rewrite"] >= 1,
       small)
expect((small["instructions"], small["instructions_was"]) == (2, 9), small)
expect("divide(" in small["hlo"] and "broadcast(" in small["hlo"]
       and "reduce" not in small["hlo"], small["hlo"])
minimal = write("minimal.hlo", small["hlo"])
words = ["ablate", minimal, "--allow-inexact=reciprocal",
         "--disable=algebraic-simplifier"]
expect(data(0, *words)["rows"][0]["bits"] == "DIFFER", "the minimal program")
# With one rewrite less the output is that without the pass.
for fuel, bits in ((small["rewrite"], "DIFFER"),
                   (small["rewrite"] - 1, "SAME")):
    row = data(0, "ablate", module, "--allow-inexact=reciprocal",
               f"--fuel=algebraic-simplifier={fuel}",
               "--disable=algebraic-simplifier")["rows"][0]
    expect(row.get("bits", "SAME") == bits, (fuel, row))
found = data(0, "ablate", module, "--disable=priority-fusion", "--bisect")
expect(found["bisect"] is None, "fusing changes no bit")
run(0, "ablate", module, "--disable=algebraic-simplifier",
    "--allow-inexact=reciprocal", "--bisect", "-o", tmp + "/small.hlo")
run(0, "check", tmp + "/small.hlo")

# ---- passes ----
run(0, "passes", "--grep=priority_FUSION", says="gpu-priority-fusion")
listed = run(0, "passes", module, "--grep=cse")
expect("  cse" in listed and "dce" not in listed, listed)
orders = [row["order"] for row in ran]
expect(orders == sorted(orders) and ran[0]["kind"] == "pipeline", orders)

# ---- what is not set up ----
for target, name in (("cpu", "xla-cpu"), ("h100", "xla-gpu"),
                     ("v6e", "xla-tpu")):
    words = ["--compiler=xla", f"--target={target}"]
    run(4, "ablate", module, "--disable=all", *words,
        says=f"lawson setup {name}")
    run(4, "passes", *words, says=f"lawson setup {name}")
run(4, "diff", module, "--a=--compiler=xla@0.9.2", "--b=",
    says="lawson setup xla-cpu@0.9.2")
run(2, "passes", "--compiler=xla", "--target=v6f", says='did you mean "v6e"?')
run(2, "explain", module, "--compiler=xla", says="lawson explain is about")

# ---- diff of two sets of options ----
found = data(3, "diff", module, "--a=", "--b=--fusion=none")
expect([p["change"] for p in found["fusions"]] == ["SPLIT"], found["fusions"])
found = data(3, "diff", module, "--a=--fusion=none", "--b=")
expect([p["change"] for p in found["fusions"]] == ["MERGED"],
       found["fusions"])
found = data(0, "diff", module, "--a=", "--b=--fusion=priority")
expect(found["verdict"] == "SAME", found)
run(2, "diff", module, says="two modules, or one")
run(2, "diff", module, module, "--a=", says="two modules, or one")
run(1, "diff", module, "--a=--no-such", "--b=", says="--no-such")

# ---- capture: a program that dumps as XLA does ----
program = write("train.sh", """#!/bin/sh
case "$XLA_FLAGS" in
  "--own_flag=1 --xla_dump_to="*" --xla_dump_hlo_as_proto") ;;
  *) echo "flags: $XLA_FLAGS"; exit 9 ;;
esac
folder=${XLA_FLAGS#*--xla_dump_to=}
folder=${folder%% *}
cd """ + tmp + """
cp before.pb $folder/module_0003.jit_f.before_optimizations.hlo.pb
cp after.pb $folder/module_0003.jit_f.cpu_after_optimizations.hlo.pb
echo rubbish > $folder/module_0004.jit_g.before_optimizations.hlo.pb
echo "the program's own words"
exit $1
""", 0o755)
run(0, "fmt", module, "--proto", "-o", tmp + "/before.pb")
run(0, "fmt", tmp + "/with.hlo", "--proto", "-o", tmp + "/after.pb")
own = {"XLA_FLAGS": "--own_flag=1"}
run(0, "capture", "-o", "kept", "--", program, "0", says="jit_f", more=own)
listed = json.loads(run(0, "capture", "--json", "-o", "kept2", "--", program,
                        "0", more=own).split("own words\n")[1])
first, second = listed["modules"]
expect((first["number"], first["name"]) == (3, "jit_f"), first)
expect(first["instructions"] == 16 and first["fusions_after"] > 0, first)
expect(second["name"] == "jit_g" and "error" in second, second)
run(0, "explain", tmp + "/kept", "--module=jit_f", says="softmax")
run(2, "capture", "-o", "kept", "--", program, "0", says="not empty")
run(1, "capture", "--", program, "5", says="status 5", more=own)
expect(os.path.isdir(tmp + "/lawson-capture"), "the folder without -o")
run(1, "capture", "--", tmp + "/no-such-program", says="cannot run")

# ---- setup, with a python3 and a pip that only say what they were told ----
python3 = write("bin/python3", """#!/bin/sh
echo "$@" >> """ + tmp + """/told
if [ "$2" = venv ]; then
  mkdir -p $3/bin && cp "$0" $3/bin/python
elif [ -e """ + tmp + """/offline ]; then
  echo "no network" >&2; exit 1
fi
""", 0o755)
fake = {"PATH": os.path.dirname(python3) + ":" + os.environ["PATH"]}
run(2, "setup", "xla-tpx", says='did you mean "xla-tpu"?')
run(2, "setup", "--remove", says="needs a NAME")
write("offline", "")
run(4, "setup", "xla-tpu", says="no network", more=fake)
expect(not data(0, "setup")["setups"][2]["ready"], "a setup that failed")
half = write("data/lawson/xla-tpu/half", "")
os.unlink(tmp + "/offline")
run(0, "setup", "xla-tpu", says="an interrupted setup is made anew",
    more=fake)
expect(not os.path.exists(half), "rests of the interrupted setup")
expect(data(0, "setup", "--list")["setups"][2]["ready"], "ready")
with open(tmp + "/told") as file:
    told = file.read()
expect("jax==0.10.2 libtpu==0.0.52" in told, told)
run(0, "setup", "xla@0.9.2", more=fake)
with open(tmp + "/told") as file:
    expect("jax==0.9.2" in file.read(), "a version of one's own")
count = len(told)
run(0, "setup", "xla-tpu", says="is ready", more=fake)
run(0, "setup", "--remove", "xla-tpu")
run(1, "setup", "--remove", "xla-tpu", says="not set up")

print("failed:", len(failed))
sys.exit(1 if failed else 0)
