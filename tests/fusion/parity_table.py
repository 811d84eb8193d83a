#!/usr/bin/env python3
"""The parity table: --fusion=xla against XLA's own decisions, target by target.

parity_table.py LAWSON FUSION_TOOL [CORPUS] [--at-least=TARGET:MODULES:DECISIONS...]
                [--triton]

A row a target:

  modules    identical to XLA's after the fusion pipeline, names aside, of all
  decisions  GPU: every priority with its two times, every fusion in order, every
             refusal. CPU: the fusions of XLA's module, compared by their bodies
  us         the largest difference of a time, in microseconds, over the decisions
             up to where a module's two runs part

The truth: CORPUS (classic.fusion_in.hlo for the CPU, gpu_plain*/ for h100),
default ../shared/corpus beside the project where it is there, else this
repository's tests/data; and tests/data/gpu_truth/TARGET for the other devices.
TARGET-alone: gpu_truth_alone, an XLA that ran its fusion pipeline and no pass
before it, so that the order of each value's readers is the file's.
--at-least fails (exit 3) when a row has fewer; a row may then be off by at most
0.1 % in a time. --triton tells about gpu/ instead: modules in which XLA's
Triton fusions stand already. Exit 77 without jaxlib."""
import collections
import os
import re
import sys
import tempfile

import gpu_parity
import parity

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data")
BESIDE = os.path.join(HERE, "../../../shared/corpus")


def bodies(path):
    """The fusions of a module: kind and body, as often as they stand."""
    found, current, end = collections.Counter(), None, ""
    for line in parity.printed(path, False):
        if current is not None:
            current.append(line.strip())
            if line == end:
                found["\n".join(current)] += 1
                current = None
        elif m := re.match(r"( *)(?:ROOT )?\S+ = .* fusion\(.*(kind=\w+), calls=$", line):
            current, end = [m[2]], m[1] + "}"
    return found


def cpu_fusions(tool, source, truth):
    """Fusions that are XLA's, and XLA's fusions."""
    run = parity.subprocess.run([tool, "fusion", source, "print"], capture_output=True, text=True)
    with tempfile.NamedTemporaryFile("w", suffix=".hlo") as out:
        out.write(run.stdout)
        out.flush()
        ours = bodies(out.name) if run.returncode == 0 else collections.Counter()
    theirs = bodies(truth)
    return sum((ours & theirs).values()), sum(theirs.values())


def cpu_row(tool, corpus):
    row = {"modules": 0, "of": 0, "decisions": 0, "of_decisions": 0, "us": None, "relative": 0.0}
    for _, source, truth in parity.folders(corpus, "classic.fusion_in.hlo", "classic.fusion_out.hlo", []):
        same, total = cpu_fusions(tool, source, truth)
        row["modules"] += not parity.compare(tool, source, truth)["graph"]
        row["of"] += 1
        row["decisions"] += same
        row["of_decisions"] += total
    return row


def largest_us(ours, theirs):
    """The largest |difference| of a time before the two runs part."""
    worst, names = 0.0, {}
    for a, b in zip(ours, theirs):
        asked = {q[:3]: q for q in (gpu_parity.renamed(q, names) for q in a["questions"]) if q[0] == "priority"}
        for q in b["questions"]:
            if q[0] == "priority" and q[:3] in asked:
                worst = max(worst, *(abs(x - y) for x, y in zip(q[3:], asked[q[:3]][3:])))
        into = {names.get(c, c): f for c, f in a["into"].items()}
        if names.get(a["producer"], a["producer"]) != b["producer"] or into.keys() != b["into"].keys():
            return worst
        names.update({into[c]: b["into"][c] for c in into})
    return worst


def module_us(tool, folder, target):
    with tempfile.TemporaryDirectory() as scratch:
        tsv = os.path.join(scratch, "out.tsv")
        failed = gpu_parity.lawson(tool, folder, target, os.path.join(scratch, "out.hlo"), tsv, gpu_parity.PRIORITY)
        truth = os.path.join(folder, "decisions.tsv")
        return float("inf") if failed else largest_us(gpu_parity.rounds(tsv), gpu_parity.rounds(truth))


def gpu_row(tool, corpus, target, wanted):
    row = {"modules": 0, "of": 0, "decisions": 0, "of_decisions": 0, "us": 0.0, "relative": 0.0}
    for name, folder in gpu_parity.folders_of(corpus, []):
        if not wanted(name):
            continue
        r = gpu_parity.check(tool, folder, target, False)
        row["modules"] += r["out"]
        row["of"] += 1
        row["decisions"] += r["identical"]
        row["of_decisions"] += r["total"]
        row["us"] = max(row["us"], module_us(tool, folder, target))
        row["relative"] = max(row["relative"], r["worst"])
        if not r["out"] or r["identical"] != r["total"]:
            print(f"  {target} {name}: decisions {r['identical']}/{r['total']}, module "
                  f"{'identical' if r['out'] else 'differs'}; {(r['first'] or '')[:160]}", file=sys.stderr)
    return row


def is_plain(name):
    return "gpu_plain" in name


def rows_of(lawson, tool, corpus):
    gpu = corpus or os.path.join(DATA, "gpu")
    yield "cpu", cpu_row(tool, corpus or os.path.join(DATA, "corpus"))
    yield "h100", gpu_row(lawson, gpu, "h100", is_plain)
    for folder, mark in (("gpu_truth", ""), ("gpu_truth_alone", "-alone")):
        base = os.path.join(DATA, folder)
        for target in sorted(os.listdir(base)):
            yield target + mark, gpu_row(lawson, os.path.join(base, target), target, lambda name: True)


def opaque_fusions(tool, folder, scratch):
    """How many kCustom fusions the module enters with."""
    out = os.path.join(scratch, "in.txt")
    run = gpu_parity.subprocess.run([tool, "fmt", os.path.join(folder, "fusion_in.pb"), "-o", out],
                                    capture_output=True, text=True)
    text = open(out).read() if run.returncode == 0 else ""
    return text.count("kind=kCustom")


def triton_row(tool, folder, scratch):
    out, tsv = os.path.join(scratch, "out.hlo"), os.path.join(scratch, "out.tsv")
    failed = gpu_parity.lawson(tool, folder, "h100", out, tsv, None)
    truth = gpu_parity.rounds(os.path.join(folder, "decisions.tsv"))
    total = gpu_parity.size_of(truth)
    if failed:
        return False, 0, total, "lawson: " + failed
    identical, _, first = gpu_parity.compare_decisions(gpu_parity.rounds(tsv), truth)
    try:
        same = gpu_parity.same(open(out).read(), os.path.join(folder, "fusion_out.hlo"), False, False)
    except Exception as error:  # XLA's parser refuses a text
        return False, identical, total, first or str(error)
    return same, identical, total, first or ""


def triton(tool, corpus):
    """gpu/: which modules differ, and what stands in them."""
    same = total = 0
    print("| module | decisions | module | opaque fusions | first difference |\n|---|---|---|---|---|")
    for folder, _, files in sorted(os.walk(corpus)):
        if os.path.basename(folder) != "gpu" or "fusion_in.pb" not in files or "decisions.tsv" not in files:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            good, identical, of, first = triton_row(tool, folder, scratch)
            opaque = opaque_fusions(tool, folder, scratch)
        total += 1
        same += good and identical == of
        if not good or identical != of:
            first = re.sub(r"[|\n]", " ", first)[:150]
            print(f"| {os.path.relpath(os.path.dirname(folder), corpus)} | {identical}/{of} | "
                  f"{'identical' if good else 'differs'} | {opaque} | {first} |", flush=True)
    print(f"\nidentical in module and decisions: {same}/{total}")
    return 0 if total else 3


def short_of(rows, floors):
    """The rows below their floor."""
    for floor in floors:
        target, modules, decisions = floor.split(":")
        row = rows.get(target)
        if not row or row["modules"] < int(modules) or row["decisions"] < int(decisions) or row["relative"] > 1e-3:
            yield floor


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    if gpu_parity.canonical_of(False) is None:
        print("parity_table: this Python has no jaxlib")
        return 77
    corpus = args[2] if len(args) > 2 else BESIDE if os.path.isdir(BESIDE) else None
    if corpus == "public":
        corpus = None
    if "--triton" in flags:
        return triton(args[0], corpus or os.path.join(DATA, "gpu"))
    rows = {}
    print("| target | modules | decisions | largest difference, us |\n|---|---|---|---|")
    for target, r in rows_of(args[0], args[1], corpus):
        rows[target] = r
        us = "no times" if r["us"] is None else f"{r['us']:.5g}"
        print(f"| {target} | {r['modules']}/{r['of']} | {r['decisions']}/{r['of_decisions']} | {us} |", flush=True)
    missed = list(short_of(rows, [f.split("=", 1)[1] for f in flags if f.startswith("--at-least=")]))
    for floor in missed:
        print("below the floor: " + floor)
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
