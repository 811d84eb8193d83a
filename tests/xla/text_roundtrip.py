#!/usr/bin/env python3
"""Is our text, to XLA's own parser, the module that went in?

    text_roundtrip.py --fmt PROGRAM DIR|FILE...   (needs jaxlib 0.10.2)

PROGRAM is `test_fmt` (tests/reader/fmt_tool.c) or anything that takes FILE and
writes the module's text. For every HLO text below the arguments:
  1. XLA's parse and print of the original equals XLA's parse and print of our
     print, under several option sets that together turn on every option of
     HloPrintOptions;
  2. our print of our print is the same bytes (default and short form);
  3. our print in XLA's order, without metadata (XLA's parser renumbers stack
     frames), is XLA's own to_string to the byte.
A text that XLA refuses is skipped and counted, and one with elided constants
({...}, which XLA fills with made-up values) must be refused by us with the
explanation. Exit 0, or 1 with the first difference of each failing file."""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    from jaxlib import _hlo
except ImportError:
    print("skipped: jaxlib is not installed")
    sys.exit(77)

SUFFIXES = (".hlo", ".dump.txt")


def option_sets():
    """(name, HloPrintOptions): between them every option is on somewhere."""
    every = _hlo.HloPrintOptions()
    for name in ("print_large_constants", "print_operand_shape",
                 "print_metadata", "print_backend_config",
                 "print_control_dependencies", "print_extra_attributes",
                 "print_ids", "print_operand_names", "print_percent",
                 "print_program_shape", "print_result_shape",
                 "include_layout_in_shapes"):
        setattr(every, name, True)
    short = _hlo.HloPrintOptions.short_parsable()
    canonical = _hlo.HloPrintOptions.canonical()
    canonical.print_large_constants = True
    canonical.print_metadata = True
    canonical.print_backend_config = True
    canonical.canonicalize_computations = True
    canonical.compact_operands = True
    return [("every", every), ("short", short), ("canonical", canonical)]


def fmt(program, path, *options):
    run = subprocess.run([program, str(path), *options], capture_output=True)
    if run.returncode:
        raise RuntimeError(run.stderr.decode(errors="replace")[:600])
    return run.stdout.decode()


def printed(module, options):
    """XLA's text. Its order of canonicalised computations changes when XLA
    reads its own print, so there they are compared as a set."""
    text = module.to_string(options)
    if not options.canonicalize_computations:
        return text
    return "\n\n".join(sorted(text.split("\n\n")))


def as_xla_reads(text):
    """What XLA's parser loses and we keep: the sign of a zero it printed as
    -0, and what a constant's layout says besides the order."""
    text = re.sub(r"(?<=[({ ])-0(?=[,)} ])", "0", text)
    return re.sub(r"(\{[0-9,]*):E\(\d+\)\} constant\(", r"\1} constant(", text)


def difference(a, b):
    lines = difflib.unified_diff(a.split("\n"), b.split("\n"), "original",
                                 "ours", lineterm="", n=0)
    return "\n".join(line[:300] for line, _ in zip(lines, range(8)))


def again(program, text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".hlo", delete=False) as f:
        f.write(text)
    try:
        return fmt(program, f.name, *options)
    finally:
        os.unlink(f.name)


def check_elided(program, path):
    try:
        fmt(program, path)
    except RuntimeError as error:
        return None if "print_large_constants" in str(error) else str(error)
    return "constants without values were accepted"


def check(program, path, sets, count, strict, semantic):
    """None when all holds, else what does not."""
    original = path.read_text()
    try:
        xla = _hlo.hlo_module_from_text(original)
    except Exception as error:
        count["refused by XLA"] += 1
        return str(error) if strict else None
    if "{...}" in original:
        count["elided"] += 1
        return check_elided(program, path)
    long_form = fmt(program, path)
    short_form = fmt(program, path, "short")
    typed = fmt(program, path, "operand_shapes=1", "async_sugar=0")
    ours = {"default": long_form, "operand shapes": typed}
    for form, text in ours.items():
        back = _hlo.hlo_module_from_text(text)
        for name, options in sets:
            a, b = printed(xla, options), printed(back, options)
            if a != b:
                return f"{form} form, options {name}:\n" + difference(a, b)
    back = _hlo.hlo_module_from_text(short_form)
    bare = dict(sets)["short"]
    if xla.to_string(bare) != back.to_string(bare):
        return "short form:\n" + difference(xla.to_string(bare),
                                            back.to_string(bare))
    if again(program, long_form) != long_form:
        return "our print of our print differs:\n" + difference(
            long_form, again(program, long_form))
    if again(program, short_form, "short") != short_form:
        return "our short print of our short print differs"
    count["same"] += 1
    if semantic:
        return None
    full = _hlo.HloPrintOptions()
    full.print_large_constants = True
    full.print_metadata = False
    verbatim = as_xla_reads(fmt(program, path, "xla_order", "metadata=0"))
    if xla.to_string(full) != verbatim:
        return "not XLA's own bytes:\n" + difference(xla.to_string(full),
                                                     verbatim)
    count["verbatim"] += 1
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmt", required=True)
    parser.add_argument("--strict", action="store_true",
                        help="a text XLA refuses is a failure")
    parser.add_argument("--semantic", action="store_true",
                        help="leave out step 3, for texts in another form "
                        "than XLA prints")
    parser.add_argument("--part", default="0/1", help="I/N: every Nth file")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    files = []
    for p in map(pathlib.Path, args.paths):
        files += [p] if p.is_file() else sorted(
            f for f in p.rglob("*") if f.name.endswith(SUFFIXES))
    sets, failed = option_sets(), 0
    count = {"same": 0, "verbatim": 0, "elided": 0, "refused by XLA": 0}
    for path in files[part::parts]:
        try:
            problem = check(args.fmt, path, sets, count, args.strict,
                            args.semantic)
        except Exception as error:
            problem = str(error)
        if problem:
            failed += 1
            print(f"{path}: {problem}")
    print(f"{failed} failed,", ", ".join(f"{v} {k}" for k, v in count.items()))
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
