#!/usr/bin/env python3
"""How often does --fusion=xla make the very module that XLA:CPU makes?

parity.py TOOL CORPUS HLO_SAME [--names] [-v] [NAME...]

Every CORPUS/*/classic.fusion_in.hlo goes through TOOL (fusion_tool's pass
`fusion`) and is compared with classic.fusion_out.hlo, up to names, by
HLO_SAME (shared/tools/hlo_same.py; needs jaxlib). Prints the ones that differ
and identical/total; exit 3 when one differs."""
import difflib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile


def load(path):
    spec = importlib.util.spec_from_file_location("hlo_same", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.canonical


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


def compare(tool, folder, canonical, names):
    source = os.path.join(folder, "classic.fusion_in.hlo")
    run = subprocess.run([tool, "fusion", source, "print"], capture_output=True, text=True)
    if run.returncode:
        return ["tool: " + (run.stderr or "killed")[:300]]
    with tempfile.NamedTemporaryFile("w", suffix=".hlo") as out:
        out.write(run.stdout)
        out.flush()
        try:
            left = canonical(out.name, names)
        except Exception as error:
            return ["parse: " + str(error)[:600]]
    right = canonical(os.path.join(folder, "classic.fusion_out.hlo"), names)
    if not names:
        left, right = anonymous(left), anonymous(right)
    return list(difflib.unified_diff(left, right, "ours", "xla", lineterm="", n=0))


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    tool, corpus, same = args[:3]
    canonical = load(same)
    total = equal = 0
    roots = sorted({d for d, _, files in os.walk(corpus) if "classic.fusion_out.hlo" in files})
    for folder in roots:
        name = os.path.relpath(folder, corpus)
        if args[3:] and name not in args[3:]:
            continue
        total += 1
        diff = compare(tool, folder, canonical, "--names" in flags)
        equal += not diff
        if diff:
            print(f"{name}: {len(diff)} lines differ")
            if "-v" in flags:
                print("\n".join(line[:400] for line in diff[:40]))
    print(f"identical {equal}/{total}")
    return 0 if equal == total else 3


if __name__ == "__main__":
    sys.exit(main())
