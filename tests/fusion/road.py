#!/usr/bin/env python3
"""What --only-fusion takes and refuses, what an earlier module's answer is
headed with, and a device of one's own.

road.py LAWSON"""
import json
import os
import subprocess
import sys
import tempfile

LAWSON = os.path.abspath(sys.argv[1])
BAD = []
PLAIN = """HloModule plain
ENTRY e {
  x = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(x)
  ROOT a = f32[64]{0} abs(n)
}
"""
DOT = """HloModule dots
ENTRY e {
  x = bf16[8,16]{1,0} parameter(0)
  y = bf16[16,8]{1,0} parameter(1)
  d = bf16[8,8]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = bf16[8,8]{1,0} negate(d)
}
"""
OPAQUE = """HloModule opaque
inside {
  p = f32[64]{0} parameter(0)
  ROOT q = f32[64]{0} exponential(p)
}
ENTRY e {
  x = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(x)
  c = f32[64]{0} custom-call(n), custom_call_target="vendor_secret"
  f = f32[64]{0} fusion(c), kind=kCustom, calls=inside
  a = f32[64]{0} abs(f)
  ROOT b = f32[64]{0} sqrt(a)
}
"""


def expect(what, good, found=""):
    if not good:
        BAD.append(what)
        print(f"not so: {what}\n{found}")


def run(*args):
    return subprocess.run([LAWSON, *args], capture_output=True, text=True)


def approximate(path, text, says, hushes):
    done = run("opt", path(text), "--target=h100", "--fusion=xla", "-o", "-")
    expect("an earlier module is headed", done.stdout.startswith("// APPROXIMATE: "), done.stdout[:200] + done.stderr)
    head = done.stdout[:done.stdout.index("HloModule")]
    expect(f"{says} in the head", all(w in head for w in says), head)
    expect(f"{hushes} not in the head", not any(w in head for w in hushes), head)
    expect("the head is legal HLO text", run("check", path(done.stdout)).returncode == 0)
    steps = json.loads(run("opt", path(text), "--target=h100", "--fusion=xla", "--json").stdout)["approximate"]
    expect("JSON has the same list", steps == [line[5:] for line in head.split("\n") if line.startswith("//   ")], steps)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        def path(text):
            name = os.path.join(scratch, f"{len(os.listdir(scratch))}.txt")
            with open(name, "w") as file:
                file.write(text)
            return name
        approximate(path, PLAIN, ["Nothing"], ["gemm", "softmax", "layout"])
        approximate(path, DOT, ["gemm", "layout", "float normalization"], ["softmax", "sort", "random", "loops"])
        only = ("--fusion=xla", "--only-fusion", "--target=h100")
        done = run("opt", path(DOT), *only, "-o", "-")
        expect("the true module has no head", done.stdout.startswith("HloModule"), done.stdout[:200] + done.stderr)
        passes = json.loads(run("opt", path(PLAIN), *only, "--json").stdout)
        expect("only-fusion JSON is not approximate", "approximate" not in passes)
        names = {p["pass"] for p in passes["passes"] if p["runs"]}
        expect("no other pass runs", "algebraic-simplifier" not in names and "gpu-priority-fusion" in names, names)
        text = run("opt", path(OPAQUE), *only, "-o", "-").stdout
        expect("a custom call stays as it is", 'custom_call_target="vendor_secret"' in text, text)
        expect("a kCustom fusion stays as it is", text.count("kind=kCustom") == 1 and text.count("exponential(") == 1, text)
        expect("what follows is fused", "kind=kLoop" in text, text)
        done = run("opt", path(PLAIN), "--only-fusion", "--target=h100")
        expect("only-fusion asks for xla", done.returncode == 4 and "--fusion=xla" in done.stderr, done.stderr)

        # A device of one's own: twice the cores, and a name.
        device = run("targets", "h100").stdout.replace("name = h100", "name = mine")
        device = device.replace("core_count = 132", "core_count = 264")
        done = run("opt", path(PLAIN), "--fusion=xla", "--only-fusion", "--target=" + path(device), "-o", "-")
        expect("an own device file decides", done.returncode == 0 and "kind=kLoop" in done.stdout, done.stderr)
        for wrong, says in ((device.replace("core_count", "core_cuont"), "did you mean core_count?"),
                            (device.replace("core_count = 264", "core_count = -1"), "core_count must lie in"),
                            (device.replace("core_count = 264", ""), "no 'core_count' given"),
                            (device.replace("core_count = 264", "core_count = 26x"), "'26x' is not a number")):
            done = run("opt", path(PLAIN), "--fusion=xla", "--only-fusion", "--target=" + path(wrong))
            expect(f"a wrong device file says {says}", done.returncode in (1, 2) and says in done.stderr, done.stderr)
            if says[0] != "n":
                expect("and where, with a caret", "^" in done.stderr, done.stderr)
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
