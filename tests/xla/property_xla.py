#!/usr/bin/env python3
"""Random modules on XLA:CPU: Lawson's results are its results, within stated bounds.

  property_xla.py RUN_TOOL [--from=SEED] [--count=N] [--need=N] [-v]

RUN_TOOL (tests/gen) writes modules with inputs and native results; XLA compiles the same texts and the outputs are
compared, element by element:
  integers, pred     equal
  floats, complex    within BOUNDS ulp of the larger of the two at the type's precision, or one of the output's scale
NaN equals NaN. Masked and counted, because the two differ there on purpose (docs/numerics.md) or because the program
makes a rounding large:
  subnormals         the module agrees once Lawson flushes them too, as XLA:CPU always does
  complex specials   elements with a NaN or an infinity on one side: Lawson's complex functions are those of C's annex G
  branch cuts        imaginary parts that differ by 2 pi: the sign of a zero chose the side
  float bits         integer outputs of a module that reads a float's bits as an integer
  total order        pred outputs of a module with a total-order comparison: the sign of a NaN
  reducers           modules with a reducer that is not associative, a + b * b, which XLA cuts into a tree
  selecting reducers a reducer a >= b ? a : b where NaNs may come up: a NaN loses on one side only, so the order shows
                     (folds of more than 256 elements are cut in blocks, docs/numerics.md 5)
  NaN under max      a reduce by maximum or minimum over a NaN, which XLA's vector code loses (tests/data/cases/18)
  batch norm         XLA takes the variance as E[x^2] - E[x]^2, which cancels
  ill-conditioned    outputs that move out of bounds on XLA itself when its inputs, or results on the way, change by
                     an ulp (a comparison, a floor or a cancellation makes it large)
Modules that XLA refuses are counted by its words. Exit 1 when one is out of bounds or fewer than --need were compared;
77 when jaxlib is missing.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from multiprocessing.pool import ThreadPool

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import jax
    import ml_dtypes
    import numpy as np
    from jaxlib import _hlo, xla_client
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# Ulp, over up to 24 steps with library functions; by the bytes of the (part's) type.
BOUNDS = {8: 256, 4: 256, 2: 8, 1: 2}
NARROW = {"bf16": "bfloat16", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn"}
NAMES = {"BF16": "bfloat16", "PRED": "bool", "F8E5M2": "float8_e5m2", "F8E4M3FN": "float8_e4m3fn"}
KINDS = {"F": "float", "S": "int", "U": "uint", "C": "complex"}


def dtype(element):
    name = element.name if hasattr(element, "name") else str(element).split(".")[-1]
    name = NAMES.get(name) or KINDS[name[0]] + name[1:]
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def typed(array, shape):
    d = dtype(shape.xla_element_type())
    return array.reshape(shape.dimensions()) if array.dtype == d else np.ascontiguousarray(array).view(d)


class Peer:
    """XLA:CPU in this process. Excess precision is off: bf16 rounds after each operation, as the HLO says. So is the
    algebraic simplifier, whose rewrites are not exact: x / x^y becomes x * x^-y in integers too, and 3 / 3^1 zero."""

    def __init__(self):
        jax.config.update("jax_enable_x64", True)
        self.device = jax.devices("cpu")[0]
        self.options = xla_client.CompileOptions()
        self.options.env_option_overrides = [("xla_allow_excess_precision", False),
                                             ("xla_disable_hlo_passes", "algsimp")]

    def compile(self, text):
        proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        shapes = _hlo.XlaComputation(proto).program_shape()
        program = xla_client._xla.mlir.hlo_to_stablehlo(proto)
        run = self.device.client.compile_and_load(program, xla_client.DeviceList((self.device,)), self.options)
        return run, shapes.parameter_shapes()

    def run(self, executable, arguments):
        return [np.asarray(o) for o in executable.execute([jax.device_put(a, self.device) for a in arguments])]


def parts(a):
    """As float64, complex parts side by side; None for what is compared exactly."""
    if a.dtype.kind == "c":
        return np.stack([a.real, a.imag]).astype(np.float64)
    if a.dtype.kind == "f" or a.dtype.kind == "V" or a.dtype.name in NARROW.values():
        return a.astype(np.float64)
    return None


def precision(d):
    return ml_dtypes.finfo(np.dtype(f"f{d.itemsize // 2}") if d.kind == "c" else d)


def difference(ours, theirs, tally=None):
    """Number of elements out of bounds; masked ones are added to the tally."""
    x, y = parts(ours), parts(theirs)
    if x is None:
        return int((ours != theirs).sum())
    limits = precision(ours.dtype)
    with np.errstate(all="ignore"):
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=0))
        ulps = BOUNDS[ours.dtype.itemsize // len(x) if ours.dtype.kind == "c" else ours.dtype.itemsize]
        bound = float(limits.eps) * np.maximum(ulps * np.maximum(np.abs(x), np.abs(y)), scale)
        bound = np.maximum(bound, 2 * float(limits.smallest_normal))
        good = (np.abs(x - y) <= bound) | (np.isnan(x) & np.isnan(y)) | (x == y)
        if ours.dtype.kind == "c":
            special = ~np.isfinite(x).all(axis=0) | ~np.isfinite(y).all(axis=0)
            cut = np.abs(np.abs(x - y) - 2 * np.pi) <= bound
            cut[0] = False
            if tally is not None:
                tally["masked elements: complex specials"] += int((~good & special).sum())
                tally["masked elements: branch cuts"] += int((~good & cut & ~special).sum())
            good |= special | cut
    return int((~good).sum())


def nudged(a, generator):
    """Each value one ulp up or down, or left."""
    if a.dtype.kind not in "fcV" and a.dtype.name not in NARROW.values():
        return a
    step = generator.integers(-1, 2, a.shape) * float(precision(a.dtype).eps)
    return (a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) * (1 + step)).astype(a.dtype)


ROUNDING = re.compile(r"^(  (?:ROOT )?)(%[\w.-]+) = (f64|f32|f16|bf16)(\[[\d,]*\])(\{[\d,]*\})? (?!parameter|constant)(.*)$")


def shaken(text, generator):
    """The module with every float result of its larger computations an ulp or two off, as another library's would be."""
    out, shake = [], False
    for line in text.split("\n"):
        if line.endswith("{"):
            shake = line.startswith(("ENTRY", "%branch", "%body"))
        m = ROUNDING.match(line) if shake else None
        if not m:
            out.append(line)
            continue
        lead, name, kind, dims, layout, rest = m.groups()
        eps = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[kind]
        factor = 1 + eps * int(generator.integers(-1, 3))
        out += [f"  {name}.raw = {kind}{dims}{layout or ''} {rest}", f"  {name}.ulp = {kind}[] constant({factor!r})",
                f"  {name}.ulps = {kind}{dims}{layout or ''} broadcast({name}.ulp), dimensions={{}}",
                f"{lead}{name} = {kind}{dims}{layout or ''} multiply({name}.raw, {name}.ulps)"]
    return "\n".join(out)


def ill_conditioned(peer, text, executable, arguments, theirs, bad):
    """Does XLA's own answer move out of bounds, in every output in question, for an ulp in the inputs or on the way?"""
    generator = np.random.default_rng(0)
    moved = set()
    for k in range(12):
        if moved == set(bad):
            break
        if k % 2 == 0:
            again = peer.run(executable, [nudged(a, generator) for a in arguments])
        else:
            again = peer.run(peer.compile(shaken(text, generator))[0], arguments)
        moved |= {k for k in bad if difference(again[k], theirs[k])}
    return moved == set(bad)


def refusal(error):
    line = str(error).split("\n")[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"|%?[\w.-]*\.?\d[\w.]*", "_", line)[:110]


def slices(text, n):
    """What each output of the entry is made of: its instructions, and every computation that they call, as text."""
    computations, lines = {}, None
    for line in text.split("\n"):
        if line.endswith("{") and not line.startswith(("HloModule", " ")):
            lines = computations.setdefault("ENTRY" if line.startswith("ENTRY") else re.match(r"%?([\w.-]+)", line)[1], [line])
        elif lines is not None and line.startswith(("  ", "}")):
            lines.append(line)

    def closure(start, inside):
        made = {re.match(r"  (?:ROOT )?%?([\w.-]+) = ", line)[1]: line for line in inside if line.startswith("  ")}
        seen, stack, called = {}, list(start), []
        while stack:
            name = stack.pop()
            if name in made and name not in seen:
                seen[name] = made[name]
                names = re.findall(r"%([\w.-]+)", made[name].split(" = ", 1)[1])
                stack += names
                called += [c for c in names if c in computations]
        return list(seen.values()), called

    entry = computations["ENTRY"]
    root = next(line for line in entry if line.startswith("  ROOT "))
    tuple_of = re.search(r" tuple\((.*)\)", root)
    roots = re.findall(r"%([\w.-]+)", tuple_of[1]) if tuple_of else [re.match(r"  ROOT %?([\w.-]+)", root)[1]]
    result = []
    for name in roots if len(roots) == n else [root.split()[1].lstrip("%")] * n:
        found, todo = closure([name], entry)
        seen = set()
        while todo:
            c = todo.pop()
            if c not in seen:
                seen.add(c)
                found += computations[c]
                todo += [x for line in computations[c] for x in re.findall(r"%([\w.-]+)", line) if x in computations]
        result.append("\n".join(found))
    return result


def is_nan_somewhere(o):
    x = parts(o)
    return x is not None and bool(np.isnan(x).any())


# Why an output may be out of bounds, by what it is made of; the first that holds is counted.
MASKS = [
    ("float bits", lambda t, o: o.dtype.kind in "iu" and re.search(r"= [su]\d+\[.*bitcast-convert\(", t)),
    ("total order", lambda t, o: o.dtype == bool and "type=TOTALORDER" in t),
    ("reducers", lambda t, o: re.search(r"%reducer[\w.]* \([^}]*multiply\(%(b[\w.]*), %\1\)", t)),
    ("selecting reducers", lambda t, o: re.search(r"%reducer[\w.]* \([^}]*compare\(", t)
     and re.search(r"= \S+ (log|sqrt|rsqrt|power|divide|log-plus-one)\(", t)),
    ("NaN under max", lambda t, o: re.search(r"%reducer[\w.]* \([^}]*(maximum|minimum)\(", t) and is_nan_somewhere(o)),
    ("batch norm", lambda t, o: " batch-norm-" in t),
]


def one(peer, folder, seed, tally):
    stem = os.path.join(folder, str(seed))
    with open(stem + ".hlo") as f:
        text = f.read()
    try:
        executable, shapes = peer.compile(text)
        arguments = []
        if shapes:
            with np.load(stem + ".in.npz") as z:
                arguments = [typed(z[f"p{k}"], s) for k, s in enumerate(shapes)]
        theirs = peer.run(executable, arguments)
    except Exception as error:  # whatever XLA raises: it is named in the report
        tally["refused: " + refusal(error)] += 1
        return None
    ours, flushed = outputs(stem + ".out.npz", theirs), outputs(stem + ".flush.npz", theirs)
    tally["compared"] += 1
    tally["elements"] += sum(o.size for o in ours)
    bad = {k: difference(o, t, tally) for k, (o, t) in enumerate(zip(ours, theirs))}
    bad = {k: n for k, n in bad.items() if n}
    if not bad:
        return None
    for k in [k for k in bad if not difference(flushed[k], theirs[k])]:
        tally["masked outputs: subnormals"] += 1
        del bad[k]
    parts_of = slices(text, len(ours))
    for k in list(bad):
        why = next((name for name, holds in MASKS if holds(parts_of[k], ours[k])), None)
        if why:
            tally["masked outputs: " + why] += 1
            del bad[k]
    if bad and ill_conditioned(peer, text, executable, arguments, theirs, bad):
        tally["masked outputs: ill-conditioned"] += len(bad)
        return None
    return ", ".join(f"o{k} {ours[k].dtype}: {n} of {ours[k].size}" for k, n in bad.items()) or None


def outputs(path, like):
    with np.load(path) as z:
        found = [z[f"o{k}"] for k in range(len(like))]
    return [o if o.dtype == t.dtype else o.view(t.dtype) for o, t in zip(found, like)]


def worker(folder, first, end):
    """One JSON line before each module and one after: XLA may take the process down with it."""
    peer = Peer()
    for seed in range(first, end):
        if not os.path.exists(os.path.join(folder, f"{seed}.out.npz")):
            continue
        print(json.dumps({"begin": seed}), flush=True)
        tally = collections.Counter()
        why = one(peer, folder, seed, tally)
        print(json.dumps({"seed": seed, "why": why, "tally": tally}), flush=True)


def supervise(folder, first, end, tally, failures):
    while first < end:
        child = subprocess.Popen([sys.executable, __file__, f"--worker={folder},{first},{end}"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        at, done = end, False
        for line in child.stdout:
            j = json.loads(line)
            done = "seed" in j
            at = j.get("begin", at)
            if done:
                tally.update(j["tally"])
                if j["why"]:
                    failures.append((j["seed"], j["why"]))
        code = child.wait()
        if code and done or code and at == end:
            raise SystemExit(f"the peer fails: exit {code}")
        if code:
            tally[f"refused: XLA ends with signal {-code}"] += 1
        first = at + 1


def main():
    flags = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:] if a.startswith("-"))
    if "worker" in flags:
        folder, first, end = flags["worker"].rsplit(",", 2)
        return worker(folder, int(first), int(end))
    tool = [a for a in sys.argv[1:] if not a.startswith("-")][0]
    first, count = int(flags.get("from", 0)), int(flags.get("count", 560))
    tally, failures, failed = collections.Counter(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([tool, folder, str(first), str(count)]).returncode:
            failed = 1
            print("some modules do not run: FAILED")
        middle = first + count // 2
        halves = [(folder, first, middle, tally, failures), (folder, middle, first + count, tally, failures)]
        with ThreadPool(2) as pool:
            pool.starmap(supervise, halves)
        for seed, why in sorted(failures):
            print(f"seed {seed}: out of bounds: {why}", flush=True)
            if "v" in flags:
                with open(os.path.join(folder, f"{seed}.hlo")) as f:
                    print(f.read())
    for name, n in sorted(tally.items()):
        print(f"{n:8} {name}")
    need = int(flags.get("need", 0))
    if tally["compared"] < need:
        print(f"fewer than {need} compared: FAILED")
        failed += 1
    failed += len(failures)
    print(f"{tally['compared'] - len(failures)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
