#!/usr/bin/env python3
"""What --fusion=priority is worth in measured time, against --fusion=xla.

fusion_worth.py LAWSON CORPUS [NAME...] [--alternations=10] [--repeat=5] [--threads=1]

CORPUS/*/bench.before.hlo (or before.hlo) is run by both strategies in turn, in processes of their own: A B, B A, A B ...
Of each process the least time of --repeat runs counts. Prints the median of the ratios priority / xla of the pairs, their
range, and LOSS where the whole range is above 1.03. Exit 3 when there is a loss."""
import json
import os
import statistics
import subprocess
import sys


def least_ns(lawson, path, strategy, repeat, threads):
    command = [lawson, "run", path, f"--fusion={strategy}", f"--repeat={repeat}", f"--threads={threads}", "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    return json.loads(run.stdout)["time_ms"]["min"] if run.returncode == 0 else None


def ratios(lawson, path, alternations, repeat, threads):
    out = []
    for k in range(alternations):
        order = ("priority", "xla") if k % 2 == 0 else ("xla", "priority")
        time = {s: least_ns(lawson, path, s, repeat, threads) for s in order}
        if None in time.values():
            return None
        out.append(time["priority"] / max(time["xla"], 1e-6))
    return out


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    lawson, corpus, *names = [a for a in sys.argv[1:] if not a.startswith("--")]
    alternations, repeat = int(options.get("alternations", 10)), int(options.get("repeat", 5))
    losses = 0
    for name in names or sorted(os.listdir(corpus)):
        path = os.path.join(corpus, name, "bench.before.hlo")
        if not os.path.exists(path):
            continue
        r = ratios(lawson, path, alternations, repeat, options.get("threads", "1"))
        if r is None:
            print(f"{name}: does not run", flush=True)
            continue
        loss = min(r) > 1.03
        losses += loss
        print(f"{name}: priority/xla {statistics.median(r):.3f} ({min(r):.3f} to {max(r):.3f}, {alternations} pairs)"
              f"{' LOSS' if loss else ''}", flush=True)
    return 3 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
