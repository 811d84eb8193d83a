#!/usr/bin/env python3
"""Who may include whom: the drawing in docs/architecture.md, checked.

  layers.py [ROOT]    exit 0, or 1 with one line a violation

base and hlo go without saying. LLVM stays inside src/codegen/llvm, hwloc inside
src/runtime, so that readers, interpreter and fusion build with a C compiler alone.
"""
import os
import re
import sys

MAY = {
    "base": [], "hlo": [], "reader": [], "trace": [], "math": [],
    "target": ["trace"],
    "lib": [],
    "interp": ["math", "lib"],
    "passes": ["interp", "trace", "target"],
    "kernel": ["trace", "target"],
    "fusion": ["passes", "kernel", "trace", "target"],
    "plan": ["kernel", "trace", "target"],
    "codegen": ["kernel", "math", "plan", "target", "trace"],
    "runtime": ["lib", "plan"],
    "driver": ["reader", "trace", "target", "math", "lib", "interp", "passes",
               "kernel", "fusion", "plan", "codegen", "runtime"],
    "lab": ["driver", "reader", "lib", "trace", "target", "passes", "fusion", "plan",
            "codegen", "runtime"],
}
EXTERNAL = {r"^llvm-c/": ["src/codegen/llvm/"], r"^hwloc": ["src/runtime/"],
            r"^zip\.h": ["src/lib/"], r"^(kissfft/|kiss_fft)": ["src/lib/"],
            r"^lapacke": ["src/lib/"], r"^cjson": ["cli/", "src/lab/"],
            r"^sqlite3": ["src/lab/"],
            r"^mpfr": []}


def check(root):
    bad = []
    for top in ("src", "cli"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if not name.endswith((".c", ".h", ".inc", ".def")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                bad += check_file(root, path)
    return bad


def check_file(root, path):
    parts = path.split(os.sep)
    stage = parts[1] if parts[0] == "src" else "cli"
    if stage != "cli" and stage not in MAY:
        return [f"{path}: folder {stage} is not in the drawing"]
    allowed = (list(MAY) if stage == "cli" else
               MAY[stage] + [stage, "base"] + ([] if stage == "base" else ["hlo"]))
    bad = []
    for number, line in enumerate(open(os.path.join(root, path)), 1):
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not m:
            continue
        if m[1] == '"':
            folder = m[2].split("/")[0] if "/" in m[2] else stage
            if folder == "lawson" or (stage == "cli" and folder == "cli"):
                continue
            if folder not in allowed:
                bad.append(f"{path}:{number}: {stage} may not include {folder} ({m[2]})")
        for pattern, homes in EXTERNAL.items():
            if re.match(pattern, m[2]) and not any(path.startswith(h) for h in homes):
                bad.append(f"{path}:{number}: {m[2]} belongs in {homes or 'tests only'}")
    return bad


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    bad = check(root)
    print("\n".join(bad) if bad else "layers: clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
