#!/usr/bin/env python3
"""--fusion=priority is never worse than --fusion=xla, in modelled time or in planned peak, and decides the same in every process.

worth.py TOOL TARGET CORPUS [NAME...] [-a] [--file=NAME.hlo]

Every CORPUS/*/before.hlo goes through worth_tool twice. Prints the programs in which the guard took another result
(-a: all), and the sums. Exit 3 when one is worse, differs between two runs, or fails."""
import os
import subprocess
import sys

PAGE = 4096  # a peak that is larger by less is not worse (src/driver/choose.c)


def ask(tool, target, path):
    run = subprocess.run([tool, target, path], capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr.strip()
    return run.stdout.strip().split(" ", 7), ""


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    tool, target, corpus, *names = [a for a in sys.argv[1:] if not a.startswith("-")]
    leaf = next((f.split("=", 1)[1] for f in flags if f.startswith("--file=")), "before.hlo")
    bad, n, taken, worse_before = 0, 0, 0, 0
    for name in names or sorted(os.listdir(corpus)):
        path = os.path.join(corpus, name, leaf)
        if not os.path.exists(path):
            continue
        row, error = ask(tool, target, path)
        again, _ = ask(tool, target, path)
        n += 1
        if row is None and "needs several devices" in error:
            n -= 1
            continue
        if row is None or again is None:
            bad += 1
            print(f"{name}: {error}")
            continue
        time, peak, own_time, own_peak, xla_time, xla_peak = map(float, row[:6])
        worse = time > xla_time or peak >= xla_peak + PAGE
        unstable = row != again
        bad += worse or unstable
        taken += row[7] != "priority"
        worse_before += own_time > xla_time or own_peak >= xla_peak + PAGE
        if worse or unstable or row[7] != "priority" or "-a" in flags:
            what = "WORSE " if worse else "UNSTABLE " if unstable else ""
            print(f"{name}: {what}{time:.0f} ns {peak:.0f} B, unguarded {own_time:.0f} ns {own_peak:.0f} B, "
                  f"xla {xla_time:.0f} ns {xla_peak:.0f} B; {row[7]}")
    print(f"{target}: {n} programs, {bad} bad; unguarded worse in {worse_before}, the guard took another result in {taken}")
    return 3 if bad or not n else 0


if __name__ == "__main__":
    sys.exit(main())
