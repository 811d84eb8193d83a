#!/usr/bin/env python3
"""Every reason code has its page, and every page its code; so have the passes."""
import os
import re
import sys

root = sys.argv[1]
text = open(os.path.join(root, "src/trace/reasons.def")).read()
codes = set(re.findall(r'^R\(\w+, "([\w-]+)"', text, re.M))
pages = {f[:-3] for f in os.listdir(os.path.join(root, "docs/reasons")) if f != "README.md"}
missing = [f"docs/reasons/{c}.md" for c in sorted(codes ^ pages)]
missing += [f"docs/passes/{p}.md" for p in ("fusion", "priority-fusion", "instruction-fusion", "multi-output-fusion",
                                             "fusion-wrapper")
            if not os.path.exists(os.path.join(root, "docs/passes", p + ".md"))]
print("\n".join(missing) or f"{len(codes)} reason codes, all with a page")
sys.exit(1 if missing else 0)
