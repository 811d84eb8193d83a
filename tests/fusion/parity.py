#!/usr/bin/env python3
"""How often does --fusion=xla make the very module that XLA:CPU makes?

parity.py TOOL [CORPUS [FRESH]] [-v] [NAME...]

Every CORPUS/*/classic.fusion_in.hlo goes through TOOL (fusion_tool's pass
`fusion`) and is compared with classic.fusion_out.hlo; every FRESH/*/in.hlo
with out.hlo beside it (default: this repository's tests/data). Both texts go
through jaxlib's parser and printer. The columns, each stricter than the one
before (docs/names.md says why there are four):

  graph    the same module when names do not count
  visits   and the same names but for their numbers, where numbers keep their
           order and their distances (or grow) inside each computation that
           XLA fuses, and computations do not interleave
  numbers  and so over all computations, XLA's numbers not below ours
  names    the same names

In both middle columns what the input names already must keep its name. XLA
never gives a number twice, also when what had it is gone, so the numbers of
classic.fusion_out.hlo depend on what its earlier passes made and dropped: the
input's text does not tell. FRESH holds runs of XLA in which no pass came
before `fusion`, and there every name must be XLA's. FRESH/history_*/ are two
runs with one input text and different outputs: at most one can agree.

Exit 3 when a module differs in graph, visits, or (FRESH) names; 77 without
jaxlib."""
import difflib
import os
import re
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data")
LEVELS = ("graph", "visits", "numbers", "names")
NOISE = re.compile(r",?\s*(sharding|frontend_attributes|control-predecessors)=\{(?:[^{}]|\{[^{}]*\})*\}")
NAME = re.compile(r"%([\w.-]+)")
HEADER = re.compile(r"^(?:ENTRY )?%([\w.-]+) .*\{$")


def printed(path, names):
    """The module's lines as jaxlib prints it, without its header."""
    from jaxlib import _hlo
    module = _hlo.hlo_module_from_text(open(path).read())
    options = _hlo.HloPrintOptions() if names else _hlo.HloPrintOptions.canonical()
    options.print_metadata = False
    options.print_backend_config = False
    options.print_extra_attributes = True
    options.print_operand_shape = False
    options.print_large_constants = True
    options.canonicalize_instruction_names = not names
    options.canonicalize_computations = not names
    lines = [line.rstrip() for line in NOISE.sub("", module.to_string(options)).split("\n")[1:]]
    lines = [line for line in lines if line]
    if names:  # a computation's parameters stand in its lines, too
        return [re.sub(r"^(ENTRY )?(%[\w.-]+) \(.*\{$", r"\1\2 (...) {", line) for line in lines]
    start = next(i for i, line in enumerate(lines) if line.startswith("ENTRY"))
    return anonymous(["ENTRY"] + lines[start + 1:])


def anonymous(lines):
    """Computations that nobody calls are printed by name, in the module's own
    order: here by content, and sorted."""
    sections, current = [], []
    for line in lines:
        if re.match(r"^[\w.-]+ \{$", line):
            line = "computation {"
            sections.append(current)
            current = []
        current.append(line)
    sections.append(current)
    return sections[0] + [line for section in sorted(sections[1:]) for line in section]


def root_and_number(name):
    k = re.fullmatch(r"(.+)\.(-?\d+)", name)
    return (k[1], int(k[2])) if k else (name, 0)


def hosts(lines):
    """Name -> the computation that was being fused when it was made: its own,
    or for what stands in a fusion the fusion's."""
    caller, inside, current = {}, {}, None
    for line in lines:
        if header := HEADER.match(line):
            current = header[1]
            inside[current] = current
        elif defined := re.match(r"^\s+(?:ROOT )?%([\w.-]+) = ", line):
            inside[defined[1]] = current
            if body := re.search(r" fusion\(.*calls=%([\w.-]+)", line):
                caller[body[1]] = current

    def host(computation):
        while computation in caller:
            computation = caller[computation]
        return computation
    return {name: host(computation) for name, computation in inside.items()}


def pairs_of(ours, theirs):
    """Our name -> XLA's, or why there is no such map."""
    if len(ours) != len(theirs):
        return f"{len(ours)} lines, XLA: {len(theirs)}"
    there, back = {}, {}
    for a, b in zip(ours, theirs):
        if NAME.sub("%", a) != NAME.sub("%", b):
            return f"{a.strip()} XLA: {b.strip()}"
        for x, y in zip(NAME.findall(a), NAME.findall(b)):
            if there.setdefault(x, y) != y or back.setdefault(y, x) != x:
                return f"{x} stands for {y} and for another"
    return there


def room(pairs, taken):
    """Numbers are given out from 0 up, those taken left out, and some are used
    up on the way: XLA's lie as far apart as ours, or farther."""
    def place(n):
        return n - sum(g < n for g in taken)
    pairs = sorted(pairs)
    return all(place(y) - place(x) >= place(b) - place(a) for (a, x), (b, y) in zip(pairs, pairs[1:]))


def rises(pairs):
    return [t for _, t in sorted(pairs)] == sorted(t for _, t in pairs)


def one_order_of_visits(numbers):
    """Each root's numbers come in blocks, a host each, and all roots agree which
    host came first."""
    before = set()
    for blocks in numbers.values():
        spans = sorted((min(t for _, t in v), max(t for _, t in v), host) for host, v in blocks.items())
        for (_, end, first), (start, _, then) in zip(spans, spans[1:]):
            if start < end:
                return f"numbers of {first} and {then} interleave"
        before |= {(a[2], b[2]) for k, a in enumerate(spans) for b in spans[k + 1:]}
    bad = next((p for p in before if p[::-1] in before), None)
    return bad and f"{bad[0]} before {bad[1]}, and after"


def names_differ(ours, theirs, source):
    """(why not even but for numbers and visits, why not but for numbers)"""
    there = pairs_of(ours, theirs)
    if isinstance(there, str):
        return there, there
    given = set(NAME.findall("\n".join(source)))
    where, numbers = hosts(ours), {}
    for x, y in there.items():
        if (x in given or y in given) and x != y:
            return (f"{x} was given, XLA: {y}",) * 2
        if x in given:
            continue
        (root, i), (other, j) = root_and_number(x), root_and_number(y)
        if root != other:
            return (f"{x}, XLA: {y}",) * 2
        numbers.setdefault(root, {}).setdefault(where[x], []).append((i, j))
    order, taken = None, {}
    for name in given:
        root, number = root_and_number(name)
        taken.setdefault(root, set()).add(number)
    for root, blocks in numbers.items():
        every = [p for v in blocks.values() for p in v]
        if not all(rises(v) for v in blocks.values()):
            return (f"{root}: numbers in another order",) * 2
        if not all(room(v, taken.get(root, ())) for v in blocks.values()):
            return (f"{root}: numbers closer than what is made between them",) * 2
        if any(t < o for o, t in every) or not rises(every):
            order = f"{root}: computations visited in another order"
    return one_order_of_visits(numbers), order


def compare(tool, source, truth):
    """Level -> None, or what differs."""
    run = subprocess.run([tool, "fusion", source, "print"], capture_output=True, text=True)
    if run.returncode:
        return dict.fromkeys(LEVELS, "tool: " + (run.stderr or "killed")[:300])
    with tempfile.NamedTemporaryFile("w", suffix=".hlo") as out:
        out.write(run.stdout)
        out.flush()
        try:
            bare, ours = printed(out.name, False), printed(out.name, True)
        except Exception as error:
            return dict.fromkeys(LEVELS, "parse: " + str(error)[:600])
    theirs = printed(truth, True)
    graph = list(difflib.unified_diff(bare, printed(truth, False), "ours", "xla", lineterm="", n=0))
    exact = list(difflib.unified_diff(ours, theirs, "ours", "xla", lineterm="", n=0))
    visits, numbers = names_differ(ours, theirs, printed(source, True))
    return {"graph": "\n".join(line[:400] for line in graph[:40]) or None, "visits": visits, "numbers": numbers,
            "names": "\n".join(line[:400] for line in exact[:8]) or None}


def folders(base, source, truth, wanted):
    for path, _, files in sorted(os.walk(base)):
        name = os.path.relpath(path, base)
        if {source, truth} <= set(files) and (not wanted or name in wanted):
            yield name, os.path.join(path, source), os.path.join(path, truth)


def table(tool, title, found, required, verbose):
    """Prints a row; the modules that agree in all that is required of them."""
    rows = {name: compare(tool, source, truth) for name, source, truth in found}
    for name, row in rows.items():
        failed = [level for level in LEVELS if row[level]]
        show = failed if verbose else [level for level in failed if level in required]
        for level in show:
            print(f"{name}: {level}: {row[level]}")
    counts = "  ".join(f"{level} {sum(not r[level] for r in rows.values())}/{len(rows)}" for level in LEVELS)
    print(f"{title}: {counts}", flush=True)
    return {name: all(not row[level] for level in required) for name, row in rows.items()}, rows


def main():
    verbose = "-v" in sys.argv[1:]
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    try:
        import jaxlib._hlo  # noqa: F401
    except ImportError:
        print("parity: this Python has no jaxlib")
        return 77
    corpus = args[1] if len(args) > 1 else os.path.join(DATA, "corpus")
    fresh = args[2] if len(args) > 2 else os.path.join(DATA, "names")
    good, _ = table(args[0], "XLA's whole pipeline",
                    folders(corpus, "classic.fusion_in.hlo", "classic.fusion_out.hlo", args[3:]),
                    ("graph", "visits"), verbose)
    new = [f for f in folders(fresh, "in.hlo", "out.hlo", args[3:]) if not f[0].startswith("history_")]
    exact, _ = table(args[0], "XLA's fusion pass alone", new, LEVELS, verbose)
    two = list(folders(fresh, "in.hlo", "out.hlo", ["history_a", "history_b"]))
    texts = {open(source).read() for _, source, _ in two}
    _, rows = table(args[0], "one text, two histories", two, ("graph", "visits"), verbose)
    proof = len(two) == 2 and len(texts) == 1 and sum(not r["names"] for r in rows.values()) == 1 \
        and not any(r["numbers"] for r in rows.values())
    if not proof:
        print("history_a, history_b: no proof that the text does not tell")
    if not args[3:] and not (good and exact):
        print("nothing to compare")
        return 3
    return 0 if all(good.values()) and all(exact.values()) and proof else 3


if __name__ == "__main__":
    sys.exit(main())
