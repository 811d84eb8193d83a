# lit: every .hlo under tests/passes and tests/fusion with a RUN line.
#   python -m lit tests --param opt=/path/to/test_opt
import os
import shutil

import lit.formats

config.name = "lawson"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".hlo"]
config.test_source_root = os.path.dirname(__file__)
config.excludes = ["data", "golden", "exact"]

opt = lit_config.params.get("opt") or os.environ.get("LAWSON_OPT")
if not opt:
    lit_config.fatal("name the tool: --param opt=... or LAWSON_OPT")
file_check = next((p for p in ("FileCheck-19", "FileCheck") if shutil.which(p)),
                  None)
if not file_check:
    lit_config.fatal("FileCheck-19 is not installed")
config.test_exec_root = os.path.join(
    lit_config.params.get("out") or os.path.dirname(os.path.abspath(opt)), "lit")
config.substitutions.append(("%lawson-opt", opt))
config.substitutions.append(("FileCheck", file_check))
config.environment["PATH"] = os.environ.get("PATH", "")
