#!/usr/bin/env python3
"""What `lawson bench` calls a difference when there is none, on this machine.

  aa.py [--lawson=PATH] [--runs=20] [--pairs=160] MODULE.hlo...

Times each module against itself again and again, and prints how often the
verdict was FASTER or SLOWER (at a stated 5 % at most one run in twenty should
be), how wide the intervals were, and the load meanwhile. The runs are kept in a
database of their own (--db, default aa.db), raw samples and all.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("modules", nargs="+")
    p.add_argument("--lawson", default=os.path.join(HERE, "..", "build", "lawson"))
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--pairs", type=int, default=160)
    p.add_argument("--db", default="aa.db")
    return p.parse_args()


def main():
    o = options()
    bad = 0
    for module in o.modules:
        verdicts, widths, control, load = collections.Counter(), [], 0, []
        for _ in range(o.runs):
            r = subprocess.run([o.lawson, "bench", module, "--anyway", "--json", f"--pairs={o.pairs}", f"--db={o.db}"],
                               capture_output=True, text=True)
            if r.returncode:
                print(f"{module}: {r.stderr.strip()}")
                bad = 1
                break
            result = json.loads(r.stdout)["result"]
            e = result["steady"]["b_over_a"]
            verdicts[result["verdict"]] += 1
            widths.append((e["high"] - e["low"]) / 2 * 100)
            control += result["control"]["verdict"] in ("FASTER", "SLOWER")
            load.append(os.getloadavg()[0])
        n = sum(verdicts.values())
        if n:
            false = verdicts["FASTER"] + verdicts["SLOWER"]
            print(f"{os.path.basename(module)}: {n} comparisons with itself, {false} false calls (control: {control}); "
                  f"{dict(verdicts)}; half width {min(widths):.1f}..{max(widths):.1f} %, median "
                  f"{statistics.median(widths):.1f} %; load {min(load):.1f}..{max(load):.1f}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
