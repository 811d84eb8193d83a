#!/usr/bin/env python3
"""ablate, passes and diff against XLA:CPU asked directly.

  xla_peer.py LAWSON [--modules=N] [--all]     (run by a Python with jaxlib)

For each module of tests/data/corpus and each pass below, this file compiles
with jaxlib itself, in a process of its own, and counts; `lawson ablate
--compiler=xla` must say the same: instructions, fusions, custom calls, moved or
not, refused or not, the outputs' bits. Exit 77 without jaxlib 0.10.2."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jax
    import jaxlib
    import numpy
    from jaxlib import _hlo
except ImportError:
    print("skipped: jaxlib is not installed")
    sys.exit(77)
if jaxlib.__version__ != "0.10.2":
    print("skipped: jaxlib is", jaxlib.__version__)
    sys.exit(77)

PASSES = ["fusion", "algsimp", "dot-library-rewriter", "cse",
          "layout-assignment", "scan_expander"]
MODULES = ["attn_f32_64x64", "layernorm", "log_softmax", "histogram"]
HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent / "data" / "corpus"

DIRECT = r"""
import json, os, re, sys
path, inputs, out, flags = sys.argv[1:]
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = flags
import jax, numpy
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax
from jaxlib.mlir import ir
from jax._src.interpreters import mlir
module = _hlo.hlo_module_from_text(open(path).read())
text = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
device = jax.devices("cpu")[0]
options = xla_client.CompileOptions()
with mlir.make_ir_context():
    done = device.client.compile_and_load(
        ir.Module.parse(text), _jax.DeviceList((device,)), options)
after = done.hlo_modules()[0]
said = after.to_string()
lines = [l for l in said.split("\n") if re.match(r" +(ROOT )?%?[\w.-]+ = ", l)]
with numpy.load(inputs) as file:
    given = [jax.device_put(file[f"p{k}"], device)
             for k in range(len(file.files))]
results = done.execute_sharded(given).disassemble_into_single_device_arrays()
numpy.savez(out, **{f"o{k}": numpy.asarray(s[0])
                    for k, s in enumerate(results)})
canonical = _hlo.HloPrintOptions.canonical()
canonical.print_large_constants = True
print(json.dumps({
    "instructions": len(lines),
    "fusions": sum(" fusion(" in l for l in lines),
    "custom_calls": sum(" custom-call(" in l for l in lines),
    "text": after.to_string(canonical)}))
"""


def direct(path, inputs, out, passes):
    flags = f"--xla_disable_hlo_passes={','.join(passes)}" if passes else ""
    done = subprocess.run(
        [sys.executable, "-c", DIRECT, path, inputs, out, flags],
        capture_output=True, text=True)
    if done.returncode:
        return None
    return json.loads(done.stdout.strip().split("\n")[-1])


def lawson(program, *words, codes=(0,)):
    env = dict(os.environ, LAWSON_PYTHON=sys.executable)
    done = subprocess.run([program, *words, "--json"], env=env, text=True,
                          capture_output=True)
    if done.returncode not in codes:
        sys.exit(f"lawson {' '.join(words)}: {done.stderr[-600:]}")
    return json.loads(done.stdout)


def make_inputs(path, to):
    """Normal numbers; whole ones small and not negative. None when numpy lacks
    a type of it."""
    from jax._src.lib import xla_client
    proto = _hlo.hlo_module_from_text(
        open(path).read()).as_serialized_hlo_module_proto()
    shapes = xla_client.XlaComputation(proto).program_shape()
    random, arrays = numpy.random.default_rng(1), {}
    for k, shape in enumerate(shapes.parameter_shapes()):
        if shape.is_tuple() or shape.numpy_dtype().kind not in "biuf":
            return False
        dims, dtype = shape.dimensions(), shape.numpy_dtype()
        arrays[f"p{k}"] = (random.standard_normal(dims).astype(dtype)
                           if dtype.kind == "f"
                           else random.integers(0, 2, dims).astype(dtype))
    numpy.savez(to, **arrays)
    return True


def same_bits(a, b):
    with numpy.load(a) as x, numpy.load(b) as y:
        return all(numpy.array_equal(x[k], y[k], equal_nan=True)
                   for k in x.files)


def check_row(row, full, without, wrong, files):
    if without is None:
        if row["verdict"] != "REFUSED":
            wrong(f"XLA fails, the verdict is {row['verdict']}")
        return
    moved = without["text"] != full["text"]
    if (row["verdict"] == "MOVED") != moved:
        wrong(f"{row['verdict']}, and the module {'' if moved else 'not '}"
              "moved")
    if row["verdict"] != "MOVED":
        return
    for key in ("instructions", "fusions", "custom_calls"):
        if row["without"][key] != without[key]:
            wrong(f"{key}: {row['without'][key]}, XLA {without[key]}")
    bits = "SAME" if same_bits(*files) else "DIFFER"
    if row["bits"] != bits:
        wrong(f"bits {row['bits']}, XLA's {bits}: {row.get('bits_text')}")


def check_module(program, name, tmp):
    """The mistakes, and how many passes were compared."""
    path = str(CORPUS / name / "before.hlo")
    inputs, mistakes = f"{tmp}/in.npz", []
    if not make_inputs(path, inputs):
        return None, 0
    full = direct(path, inputs, tmp + "/full.npz", [])
    if full is None:
        return None, 0
    found = lawson(program, "ablate", path, "--compiler=xla",
                   f"--inputs={inputs}", "--disable=" + ",".join(PASSES))
    for key in ("instructions", "fusions", "custom_calls"):
        if found["full"][key] != full[key]:
            mistakes.append(f"{name}: {key} {found['full'][key]}, XLA "
                            f"{full[key]}")
    if found["control"] != "SAME":
        mistakes.append(f"{name}: the control moved")
    for row in found["rows"]:
        without = direct(path, inputs, tmp + "/without.npz", [row["name"]])
        check_row(row, full, without,
                  lambda text, row=row: mistakes.append(
                      f"{name} without {row['name']}: {text}"),
                  (tmp + "/full.npz", tmp + "/without.npz"))
    return mistakes, len(found["rows"])


def check_passes(program):
    """The names of the log; the ones of the dumps are among them."""
    path = str(CORPUS / "attn_f32_64x64" / "before.hlo")
    rows = lawson(program, "passes", path, "--compiler=xla")["passes"]
    names = {row["name"] for row in rows}
    missing = {"fusion", "algsimp", "simplification", "cse", "fusion-wrapper",
               "layout-assignment"} - names
    kinds = {row["kind"] for row in rows if row["name"] == "simplification"}
    changed = {row["name"] for row in rows
               if row["changed"] and row["kind"] == "pass"}
    if missing or kinds != {"pipeline"} or "fusion" not in changed:
        return [f"passes: {missing} missing, {kinds}, {changed}"]
    with tempfile.TemporaryDirectory() as dump:
        env = dict(os.environ, JAX_PLATFORMS="cpu")
        make_inputs(path, dump + "/in.npz")
        subprocess.run(
            [sys.executable, "-c", DIRECT, path, dump + "/in.npz",
             dump + "/out.npz",
             f"--xla_dump_to={dump} --xla_dump_hlo_pass_re=.*"],
            env=env, capture_output=True, check=True)
        dumped = {m[1] for name in os.listdir(dump) if
                  (m := re.search(r"\.\d{4}\..*\.after_(.*)\.before_", name))}
    dumped.discard("pipeline-start")
    plain = {re.sub(r"[^\w.-]", "_", n) for n in
             {row["name"] for row in rows if row["changed"]}}
    if not dumped <= plain:
        return [f"passes: dumped, not changed: {dumped - plain}"]
    return []


def check_diff(program):
    path = str(CORPUS / "attn_f32_64x64" / "before.hlo")
    found = lawson(program, "diff", path, "--a=--compiler=xla",
                   "--b=--compiler=xla --xla_disable_hlo_passes=fusion",
                   codes=(3,))
    with tempfile.TemporaryDirectory() as tmp:
        make_inputs(path, tmp + "/in.npz")
        for side, passes in (("a", []), ("b", ["fusion"])):
            want = direct(path, tmp + "/in.npz", tmp + "/o.npz", passes)
            for key in ("instructions", "fusions"):
                if found[side][key] != want[key]:
                    return [f"diff: {side} {key}"]
    if "SPLIT" not in {p["change"] for p in found["fusions"]}:
        return ["diff: no fusion split without the fusion pass"]
    return []


CONTRACTION = """HloModule contraction

ENTRY e {
  x = f32[1000] parameter(0)
  y = f32[1000] parameter(1)
  z = f32[1000] parameter(2)
  t = f32[1000] tanh(x)
  p = f32[1000] multiply(t, y)
  s = f32[1000] add(p, z)
  ROOT m = f32[1000] maximum(s, x)
}
"""


def check_bisect(program):
    """XLA:CPU's fusion lets a multiply and an add round once."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + "/m.hlo", "w") as file:
            file.write(CONTRACTION)
        found = lawson(program, "ablate", tmp + "/m.hlo", "--compiler=xla",
                       "--disable=fusion", "--bisect")["bisect"]
    if (not found or found["instructions"] != 2
            or "multiply" not in found["hlo"] or "add" not in found["hlo"]):
        return [f"bisect: {found}"]
    return []


def main():
    program = os.path.abspath(sys.argv[1])
    modules = MODULES
    if "--all" in sys.argv:
        modules = sorted(p.name for p in CORPUS.iterdir())[:40]
    mistakes = (check_passes(program) + check_diff(program)
                + check_bisect(program))
    compared = rows = 0
    for name in modules:
        with tempfile.TemporaryDirectory() as tmp:
            found, count = check_module(program, name, tmp)
        if found is None:
            print("not compared:", name)
            continue
        compared += 1
        rows += count
        mistakes += found
    for text in mistakes:
        print("FAILED:", text)
    print(f"{compared} modules, {rows} passes compared, {len(mistakes)} "
          "differ")
    return 1 if mistakes or compared < min(4, len(modules)) else 0


if __name__ == "__main__":
    sys.exit(main())
