#!/usr/bin/env python3
"""lawson opt prints the same bytes in ten processes, whatever addresses they get and wherever they run.

  same_bytes.py LAWSON
"""
import os
import subprocess
import sys
import tempfile
from multiprocessing.pool import ThreadPool

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "corpus")
PROGRAMS = ["attn_f32_64x64", "gpt_train_step", "lstm_scan", "fuse_diamond_multiout", "opt_adam"]
ROADS = [["--fusion=priority"], ["--fusion=xla"], ["--fusion=none"], ["--dump-plan"], ["--dump-kernels"]]
PROCESSES = 10


def output(arguments, k, tmp):
    """Process k differs from the others in what must not matter: folder, environment, size of its memory."""
    env = {"PATH": os.environ.get("PATH", ""), "HOME": tmp, "FILLER": "x" * (97 * k)}
    done = subprocess.run(arguments, capture_output=True, cwd=tmp if k % 2 else "/", env=env)
    return done.stdout + str(done.returncode).encode()


def main():
    lawson = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/lawson")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp, ThreadPool(2) as pool:
        for program in PROGRAMS:
            module = os.path.abspath(os.path.join(DATA, program, "before.hlo"))
            if not os.path.exists(module):
                continue
            for road in ROADS:
                arguments = [lawson, "opt", module, *road]
                outputs = set(pool.map(lambda k: output(arguments, k, tmp), range(PROCESSES)))
                good = len(outputs) == 1 and next(iter(outputs)).endswith(b"0") and len(next(iter(outputs))) > 100
                passed, failed = passed + good, failed + (not good)
                if not good:
                    print(f"{program} {' '.join(road)}: {len(outputs)} different outputs: FAILED")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
