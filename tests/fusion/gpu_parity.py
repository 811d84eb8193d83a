#!/usr/bin/env python3
"""Does --fusion=xla decide for a GPU what XLA:GPU decides?

gpu_parity.py LAWSON [CORPUS [NAME...]] [-v] [--target=h100] [--json=FILE] [--alone]

For every folder of CORPUS (default: tests/data/gpu of this repository) that
holds fusion_in.pb, decisions.tsv, priority_out.hlo and fusion_out.hlo, the
command

  LAWSON opt fusion_in.pb --target=T --fusion=xla --only-fusion

must print XLA's module (after priority fusion, and after the whole pipeline),
and take its decisions: each priority with its two times, each fusion in order,
each refusal. Between two fusions the order is free, as it is in XLA.

--alone: the folders are of an XLA in which nothing but these fusion passes ran
(xla_enable_hlo_passes_only), without its cse and dce. There the order of each
value's readers, which earlier passes change and no file tells, is known.

Prints a line a folder that differs, with its first differing decision, and
the totals. Modules are compared by jaxlib's own parser and printer; where Python
has no jaxlib only decisions are. Exit 3 when a module (up to names) or a decision
differs."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from parity import anonymous

PRIORITY = "variadic-op-splitter,sort-iota-fusion,gpu-priority-fusion"
ALONE = PRIORITY + ",gpu-multi-output-fusion"


def reached(lines):
    """Without dce, computations that nobody calls any more stay: left out."""
    end = next((k for k, line in enumerate(lines) if line == "computation {"), len(lines))
    return lines[:end]


def canonical_of(names):
    """Text -> canonical lines, by jaxlib; None without it."""
    try:
        from jaxlib import _hlo
    except ImportError:
        return None

    def canonical(text, constants):
        module = _hlo.hlo_module_from_text(text)
        options = _hlo.HloPrintOptions() if names else _hlo.HloPrintOptions.canonical()
        options.print_metadata = False
        options.print_backend_config = False
        options.print_extra_attributes = True
        options.print_operand_shape = False
        options.print_large_constants = constants
        if not names:
            options.canonicalize_instruction_names = True
            options.canonicalize_computations = True
        out = module.to_string(options)
        out = re.sub(r",?\s*(sharding|frontend_attributes|control-predecessors)=\{(?:[^{}]|\{[^{}]*\})*\}", "", out)
        lines = [line.rstrip() for line in out.split("\n")[1:] if line.strip()]
        if not names:
            start = next(i for i, line in enumerate(lines) if line.startswith("ENTRY"))
            lines = anonymous(["ENTRY"] + lines[start + 1:])
        return lines
    return canonical


def same(ours, theirs, names, alone):
    canonical = canonical_of(names)
    if not canonical:
        return True
    text = open(theirs).read()
    constants = "{...}" not in text  # XLA left large ones out of its text
    a, b = canonical(ours, constants), canonical(text, constants)
    return reached(a) == reached(b) if alone and not names else a == b


def rounds(path):
    """Steps: a producer, the readers it was fused into, what they became, and
    the questions asked before."""
    steps, questions = [], []
    for line in filter(str.strip, open(path)):
        f = line.rstrip("\n").split("\t")
        if f[0] == "fusion":
            if questions or not steps or steps[-1]["producer"] != f[1]:
                steps.append({"questions": questions, "producer": f[1], "into": {}})
                questions = []
            steps[-1]["into"][f[2]] = f[3]
        elif f[0] == "priority":
            questions.append(("priority", f[1], frozenset(f[2].split(",")), float(f[3]), float(f[4])))
        else:
            questions.append(tuple(f))
    steps.append({"questions": questions, "producer": None, "into": {}})
    return steps


def renamed(question, names):
    f = list(question)
    f[1] = names.get(f[1], f[1])
    if f[0] == "priority":
        f[2] = frozenset(names.get(c, c) for c in f[2])
    return tuple(f)


def size_of(steps):
    return sum(len(s["questions"]) + len(s["into"]) for s in steps)


def compare_decisions(ours, theirs):
    """identical, worst relative difference, the first difference. The number in
    a fusion's name depends on what XLA named before, and the order of one
    producer's readers on how XLA built the module: neither is in the module.
    Names are matched through the fusions, readers as sets."""
    identical, worst, first, names = 0, 0.0, None, {}
    for k, (a, b) in enumerate(zip(ours, theirs)):
        left = collections.Counter(renamed(q, names) for q in a["questions"])
        right = collections.Counter(b["questions"])
        identical += sum((left & right).values())
        extra, missing = list((left - right).elements()), list((right - left).elements())
        times = {q[:3]: q for q in extra if q[0] == "priority"}
        for q in missing:
            for x, y in zip(q[3:], times.get(q[:3], q)[3:]):
                if q[0] == "priority":
                    worst = max(worst, abs(x - y) / max(abs(x), 1e-9))
        if (extra or missing) and first is None:
            first = f"step {k}: {extra[:3]} XLA: {missing[:3]}"
        producer = names.get(a["producer"], a["producer"])
        into = {names.get(c, c): f for c, f in a["into"].items()}
        if producer != b["producer"] or into.keys() != b["into"].keys():
            return identical, worst, first or f"step {k}: {producer} into {sorted(into)} XLA: {b['producer']} into {sorted(b['into'])}"
        identical += len(into)
        new = {into[c]: b["into"][c] for c in into}
        names.update(new)
    if len(ours) != len(theirs) and first is None:
        first = f"{len(ours)} steps, XLA: {len(theirs)}"
    return identical, worst, first


def lawson(tool, folder, target, out, tsv, passes):
    command = [tool, "opt", os.path.join(folder, "fusion_in.pb"), "--target=" + target, "--fusion=xla",
               "--only-fusion", "-o", out, "--decisions=" + tsv]
    if passes:
        command.append("--passes=" + passes)
    run = subprocess.run(command, capture_output=True, text=True)
    return None if run.returncode == 0 else (run.stderr.strip() or "killed").split("\n")[0]


def check(tool, folder, target, alone):
    row = {"priority": False, "priority_names": False, "out": False, "out_names": False, "identical": 0,
           "total": 0, "worst": 0.0, "first": None}
    truth = rounds(os.path.join(folder, "decisions.tsv"))
    row["total"] = size_of(truth)
    with tempfile.TemporaryDirectory() as scratch:
        out, tsv = os.path.join(scratch, "out.hlo"), os.path.join(scratch, "out.tsv")
        for step, passes in (("priority", PRIORITY), ("out", ALONE if alone else None)):
            failed = lawson(tool, folder, target, out, tsv, passes)
            if failed:
                row["first"] = "lawson: " + failed[:300]
                return row
            if step == "priority":
                row["identical"], row["worst"], row["first"] = compare_decisions(rounds(tsv), truth)
            truth_file = os.path.join(folder, "priority_out.hlo" if step == "priority" else "fusion_out.hlo")
            text = open(out).read()
            try:
                row[step] = same(text, truth_file, False, alone)
                row[step + "_names"] = same(text, truth_file, True, alone)
            except Exception as error:  # XLA's parser refuses a text
                row["first"] = row["first"] or "text: " + str(error)[:300]
    return row


def folders_of(corpus, names):
    wanted = {"fusion_in.pb", "decisions.tsv", "priority_out.hlo", "fusion_out.hlo"}
    for path, _, files in sorted(os.walk(corpus)):
        name = os.path.relpath(path, corpus)
        if wanted <= set(files) and (not names or any(n in name for n in names)):
            yield name, path


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    target = next((f.split("=")[1] for f in flags if f.startswith("--target=")), "h100")
    corpus = args[1] if len(args) > 1 else os.path.join(os.path.dirname(__file__), "../data/gpu")
    if canonical_of(False) is None:
        print("gpu_parity: this Python has no jaxlib: decisions only")
    rows = {}
    for name, path in folders_of(corpus, args[2:]):
        r = rows[name] = check(args[0], path, target, "--alone" in flags)
        if not (r["priority"] and r["out"] and r["identical"] == r["total"]) or "-v" in flags:
            marks = " ".join(k for k in ("priority", "out") if not r[k])
            print(f"{name}: decisions {r['identical']}/{r['total']}; differs: {marks or 'nothing'}; {r['first']}",
                  flush=True)
    for k, what in (("priority", "modules after priority fusion"), ("priority_names", "  with names"),
                    ("out", "modules after the pipeline"), ("out_names", "  with names")):
        print(f"{what}: {sum(r[k] for r in rows.values())}/{len(rows)}")
    print(f"modules whose every decision is XLA's: {sum(r['identical'] == r['total'] for r in rows.values())}/{len(rows)}")
    print(f"fusions in order, refusals, priorities: {sum(r['identical'] for r in rows.values())}/{sum(r['total'] for r in rows.values())}")
    print(f"largest relative difference of a time: {max((r['worst'] for r in rows.values()), default=0):.3g}")
    for f in flags:
        if f.startswith("--json="):
            json.dump(rows, open(f.split("=", 1)[1], "w"), indent=1)
    good = all(r["priority"] and r["out"] and r["identical"] == r["total"] for r in rows.values())
    return 0 if rows and good else 3


if __name__ == "__main__":
    sys.exit(main())
