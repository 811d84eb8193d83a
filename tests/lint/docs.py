#!/usr/bin/env python3
"""What docs/ must hold, checked against the code.

  docs.py ROOT [LAWSON]   exit 0, or 1 with one line a violation

Every pass, every reason code and every folder has its words; every page is
about something that exists; links between pages lead somewhere. With the
binary, the passes it prints are the ones with pages.
"""
import os
import re
import subprocess
import sys

HOWTOS = ("add-an-op", "add-a-pass", "add-a-target")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def pages(root, folder):
    return {name[:-3] for name in os.listdir(os.path.join(root, "docs", folder))
            if name.endswith(".md") and name != "README.md"}


def both(folder, names, written):
    return ([f"docs/{folder}/{n}.md is missing" for n in sorted(names - written)] +
            [f"docs/{folder}/{n}.md is about nothing" for n in sorted(written - names)])


def listed_passes(lawson):
    out = subprocess.run([lawson, "passes"], capture_output=True, text=True,
                         check=True).stdout
    table = out.split("\npipeline ")[0]
    return {line.split()[0] for line in table.splitlines()
            if line and not line.startswith(" ")}


def check_links(root):
    bad = []
    for folder, _, files in os.walk(os.path.join(root, "docs")):
        for name in files:
            if not name.endswith(".md"):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(root, path)):
                if "://" in link:
                    continue
                if not os.path.exists(os.path.join(folder, link)):
                    bad.append(f"{path}: no such page: {link}")
    return bad


def check_sources(root):
    """A page that names a file of the tree names one that exists."""
    bad = []
    for folder, _, files in os.walk(os.path.join(root, "docs")):
        for name in files:
            if not name.endswith(".md"):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            for ref in set(re.findall(r"\b((?:src|cli|tests|tools|cmake)/[\w/.-]+\.(?:c|h|def|inc|cc|py))\b",
                                      read(root, path))):
                if "my_pass" not in ref and not os.path.exists(os.path.join(root, ref)):
                    bad.append(f"{path}: no such file: {ref}")
    return bad


def check_architecture(root):
    text = read(root, "docs/architecture.md")
    folders = sorted(d for d in os.listdir(os.path.join(root, "src"))
                     if os.path.isdir(os.path.join(root, "src", d)))
    return [f"docs/architecture.md: src/{d}/ is not in the table"
            for d in folders if f"src/{d}/" not in text]


def main():
    root = sys.argv[1]
    codes = set(re.findall(r'^R\(\w+, "([\w-]+)"', read(root, "src/trace/reasons.def"), re.M))
    bad = both("reasons", codes, pages(root, "reasons"))
    if len(sys.argv) > 2:
        bad += both("passes", listed_passes(sys.argv[2]), pages(root, "passes"))
    index = read(root, "docs/passes/README.md")
    bad += [f"docs/passes/README.md does not name {p}"
            for p in sorted(pages(root, "passes")) if p not in index]
    written = pages(root, "howto")
    bad += [f"docs/howto/{h}.md is missing" for h in HOWTOS if h not in written]
    bad += check_links(root) + check_sources(root) + check_architecture(root)
    print("\n".join(bad) if bad else "docs: complete")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
