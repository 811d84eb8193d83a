#!/usr/bin/env python3
"""Kernels and intermediate bytes: Lawson's default strategy beside XLA:CPU's.

corpus.py TOOL CORPUS [-a]

Each CORPUS/*/before.hlo goes through the whole CPU pipeline (fusion_tool with
LW_FULL); classic.fusion_out.hlo, XLA's own result, is counted by the same code.
Prints the programs with more of either (-a: all) and the sums; exit 3 when there
are such that are not in EXPECTED."""
import concurrent.futures
import os
import re
import subprocess
import sys

# name: why Lawson has more there. shard_*: before.hlo is the program of all
# devices, classic.fusion_out.hlo that of one.
EXPECTED = {
    "shard_collectives": "not one device's program",
    "shard_fsdp_step": "not one device's program",
    "shard_dp_train": "not one device's program",
    "shard_2d_mesh_groups": "not one device's program",
}


def count(tool, strategy, path, full):
    env = dict(os.environ)
    env.pop("LW_FULL", None)
    if full:
        env["LW_FULL"] = "1"
    run = subprocess.run([tool, strategy, path, "report"], capture_output=True, text=True, env=env)
    if run.returncode:
        return None
    value = dict(re.findall(r"(\w+)=(\d+)", run.stdout))
    return int(value["kernels"]), int(value["intermediate_bytes"])


def compare(tool, folder):
    ours = count(tool, "priority", os.path.join(folder, "before.hlo"), True)
    xla = count(tool, "plain", os.path.join(folder, "classic.fusion_out.hlo"), False)
    return os.path.basename(folder), ours, xla


def main():
    tool, corpus = sys.argv[1:3]
    folders = sorted(os.path.join(corpus, d) for d in os.listdir(corpus)
                     if os.path.exists(os.path.join(corpus, d, "classic.fusion_out.hlo")))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda folder: compare(tool, folder), folders))
    bad, sums = [], [0, 0, 0, 0]
    for name, ours, xla in rows:
        if ours is None or xla is None:
            bad.append(name)
            print(f"{name}: the tool failed")
            continue
        sums = [a + b for a, b in zip(sums, ours + xla)]
        more = ours[0] > xla[0] or ours[1] > xla[1]
        if more or "-a" in sys.argv:
            note = EXPECTED.get(name, "MORE") if more else ""
            print(f"{name}: kernels {ours[0]} / {xla[0]}, bytes {ours[1]} / {xla[1]} {note}")
        if more and name not in EXPECTED:
            bad.append(name)
    print(f"{len(rows)} programs, Lawson / XLA: kernels {sums[0]} / {sums[2]}, bytes {sums[1]} / {sums[3]}")
    return 3 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
