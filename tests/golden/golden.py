#!/usr/bin/env python3
"""Golden files: what the command prints for a few programs, byte for byte.

  golden.py [LAWSON]            compare; a difference is shown and fails
  golden.py [LAWSON] --bless    rewrite the files from today's output (then read the diff before you commit it)
"""
import difflib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = "tests/data/corpus"
TARGET = ["--target=tests/golden/golden.target"]

# name -> arguments; run from the repository's root so that no path of a machine appears
GOLDEN = {
    "fmt-softmax": ["fmt", f"{DATA}/softmax/before.dump.txt"],
    "fmt-tuple-layouts": ["fmt", f"{DATA}/tricky/layouts_mixed/before.hlo"],
    "opt-attention-xla": ["opt", f"{DATA}/attn_f32_64x64/before.hlo", "--fusion=xla", *TARGET],
    "opt-attention-priority": ["opt", f"{DATA}/attn_f32_64x64/before.hlo", "--fusion=priority", *TARGET],
    "opt-layernorm-priority": ["opt", f"{DATA}/layernorm/before.hlo", "--fusion=priority", *TARGET],
    "kernels-softmax": ["opt", f"{DATA}/softmax/before.hlo", "--dump-kernels", *TARGET],
    "plan-while": ["opt", f"{DATA}/mandelbrot_while/before.hlo", "--dump-plan", *TARGET],
    "check-errors": ["check", "tests/golden/broken.hlo"],
    "passes": ["passes"],
}


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    lawson = os.path.abspath(args[0] if args else "build/lawson")
    os.chdir(os.path.join(HERE, "..", ".."))
    failed = 0
    for name, arguments in GOLDEN.items():
        path = os.path.join(HERE, name + ".txt")
        done = subprocess.run([lawson, *arguments], capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
        got = done.stdout + (done.stderr if name.startswith("check") else "") + f"exit {done.returncode}\n"
        if "--bless" in sys.argv:
            open(path, "w").write(got)
            continue
        want = open(path).read() if os.path.exists(path) else ""
        if got == want:
            print(f"golden {name}: ok")
            continue
        failed += 1
        print(f"golden {name}: FAILED")
        print("\n".join(list(difflib.unified_diff(want.split("\n"), got.split("\n"), "golden", "now", lineterm=""))[:60]))
    print(f"{len(GOLDEN) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
