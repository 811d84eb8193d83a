#!/usr/bin/env python3
"""Every program of a corpus, by every road, held against XLA's fusions and against float64.

  corpus.py LAWSON [DIR] [--only=NAME,...] [--jobs=N] [-v]

DIR (default: tests/data/corpus) holds folders with before.hlo, and where there is data inputs.npz (p0 ...) and
outputs.npz (o0 ...: XLA:CPU's results, r0 ...: the same in float64). For each program:
  check     the checker has nothing to say
  run       native results as close to float64 as docs/numerics.md "Against XLA" asks; integers equal XLA's
  interp    the interpreter has the same bits
  verify    so has every other road: unfused, other instruction sets, other numbers of threads
  fusion    kernels and intermediate bytes at most those of classic.fusion_out.hlo (XLA:CPU's own fusion pass)
  stable    opt prints the same bytes twice
Programs without data run on seeded inputs, without `run`'s comparison. What one device or no host can do must be
refused in words: REFUSED. Prints a table, the geometric mean of the error ratio, and "N passed, N failed".
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from multiprocessing.pool import ThreadPool

import ml_dtypes
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 120  # a command's limit

# Programs that one device, or no host at the other end, cannot run, and what Lawson must say instead. (The modules of
# one device of several, perdevice.hlo, are not run either: Lawson runs on one.)
REFUSED = {
    "shard_2d_mesh_groups": "needs several devices",
    "shard_collectives": "needs several devices",
    "shard_dp_train": "needs several devices",
    "shard_fsdp_step": "needs several devices",
    "tricky/op_custom_call_unknown": 'custom call "nobody.home" is unknown',
    "tricky/op_infeed_outfeed": "infeed needs a host",
    "tricky/op_send_recv": "needs a host",
}

# Outputs that differ from XLA's for a reason that is no error. (program, output): reason.
KNOWN = {
    ("cholesky_trisolve", 0): "an ill-conditioned solve: terms cancel",
    ("cholesky_trisolve", 2): "an ill-conditioned solve: terms cancel",
    ("tricky/op_rng", 0): "rng has no prescribed stream",
    ("ops_fp8", 0): "the bits of a NaN: ours is canonical",
    ("ops_sort_topk", 4): "a sort with subnormals, which XLA reads as zeros",
    ("ops_sort_topk", 7): "sorted by GT with a NaN: no strict weak order",
    ("ops_sort_topk", 8): "sorted by GT with a NaN: no strict weak order",
}

# HLO's float types: numpy's, how they lie in an npz, bits of precision behind the point, smallest normal number.
FLOATS = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "f8e5m2": "float8_e5m2",
          "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn", "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
          "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e3m4": "float8_e3m4",
          "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float4_e2m1fn"}
PARTS = {"c64": "f32", "c128": "f64"}


def info(name):
    return ml_dtypes.finfo(np.dtype(FLOATS[name]) if name in ("f16", "f32", "f64") else getattr(ml_dtypes, FLOATS[name]))


def values(array, name):
    """An array of an npz as float64 (parts of complex ones side by side), or None where it is no float."""
    part = PARTS.get(name, name)
    if part not in FLOATS:
        return None
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "V" or (array.dtype.kind == "u" and part not in ("f16", "f32", "f64")):
        array = array.view(getattr(ml_dtypes, FLOATS[part]))
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    return array.astype(np.float64).reshape(-1)


def same_bits(a, b, name):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    raw_a, raw_b = (x.reshape(-1).view(np.uint8) for x in (a, b))
    if raw_a.tobytes() == raw_b.tobytes():
        return True
    va, vb = values(a, name), values(b, name)
    if va is None:  # NaN equals NaN, nothing else equals anything else
        return False
    both = np.isnan(va) & np.isnan(vb)
    if name in PARTS:
        raw_a, raw_b = (np.stack([x.real, x.imag]).reshape(-1).view(np.uint8) for x in (a, b))
    wide = (raw_a != raw_b).reshape(len(va), -1).any(axis=1)
    return not (wide & ~both).any()


def special(x):
    """0 finite, 1 NaN, 2 and 3 the infinities."""
    return np.where(np.isnan(x), 1, np.where(np.isinf(x), np.where(x > 0, 2, 3), 0))


def error(x, reference):
    """Root mean square, maximum, new specials; over what is finite on both sides."""
    finite = np.isfinite(x) & np.isfinite(reference)
    specials = int((special(x)[~finite] != special(reference)[~finite]).sum())
    e = np.abs(x[finite] - reference[finite])
    return (math.sqrt(float((e * e).mean())) if len(e) else 0.0), float(e.max(initial=0)), specials


def scale_of(x):
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max(initial=0))


def compare(got, xla, reference, name, narrowest):
    """(None or what is wrong, ours over XLA's rms error or None)."""
    x, o = values(got, name), values(xla, name)
    if x is None:
        if name in ("s4", "u4"):  # a byte each, of which the lower half counts
            got, xla = got & 15, xla & 15
        differ = int((got != xla.reshape(got.shape)).sum()) if got.size == xla.size else -1
        return (f"{differ} of {got.size} differ" if differ else None), None
    part = PARTS.get(name, name)
    if reference is not None:
        r = values(reference, "c128" if np.iscomplexobj(reference) else "f64")
        ours, theirs = error(x, r), error(o, r)
        floor = 4 * float(info(part).eps) * scale_of(r)
        ratio = ours[0] / theirs[0] if ours[0] > 0 and theirs[0] > 0 else None
        if ours[0] <= max(2 * theirs[0], floor) and ours[1] <= max(2 * theirs[1], floor) and ours[2] <= theirs[2]:
            return None, ratio
        return (f"rms {ours[0]:.3g} (XLA {theirs[0]:.3g}), max {ours[1]:.3g} (XLA {theirs[1]:.3g}), "
                f"floor {floor:.3g}, specials {ours[2]} (XLA {theirs[2]})"), ratio
    # Without float64: 64 ulp of the output's scale, one ulp of the narrowest type it went through.
    bound = max(64 * float(info(part).eps) * scale_of(o), float(info(part).smallest_normal))
    if narrowest and narrowest != part:
        bound = max(bound, float(info(narrowest).eps) * scale_of(o))
    rms, most, specials = error(x, o)
    return (None if most <= bound and not specials else
            f"off by {most:.3g} (bound {bound:.3g}), {specials} specials"), None


def narrowest_float(text):
    found = {t for t in re.findall(r"\b([a-z0-9]+)\[", text) if t in FLOATS}
    return max(found, key=lambda t: float(info(t).eps), default=None)


class Failure(Exception):
    pass


class Program:
    def __init__(self, lawson, root, folder, tmp):
        self.lawson, self.name, self.folder, self.tmp = lawson, os.path.relpath(folder, root), folder, tmp
        self.module = os.path.join(folder, "before.hlo")
        self.failures, self.exceptions, self.notes, self.ratios, self.row = [], [], [], [], {}

    def file(self, name):
        path = os.path.join(self.folder, name)
        return path if os.path.exists(path) else None

    def command(self, *arguments, code=0):
        try:
            done = subprocess.run([self.lawson, *arguments], capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{arguments[0]}: more than {SECONDS} s")
        if done.returncode != code:
            said = (done.stderr.strip() or done.stdout.strip())[-300:]
            raise Failure(f"{' '.join(a for a in arguments if a.startswith('-') or a == arguments[0])}: "
                          f"exit {done.returncode}: {said}")
        return done

    def inputs(self):
        return ["--inputs", self.file("inputs.npz")] if self.file("inputs.npz") else ["--seed=1"]

    def run(self, road, *arguments):
        path = os.path.join(self.tmp, f"{self.name.replace('/', '_')}.{road}.npz")
        done = self.command("run", self.module, *self.inputs(), "--save", path, "--json", *arguments)
        types = [o["type"] for o in json.loads(done.stdout)["outputs"]]
        with np.load(path) as z:
            arrays = [z[f"o{k}"] for k in range(len(types))]
        os.remove(path)
        return types, arrays

    def step_check(self):
        self.command("check", self.module)

    def step_run(self):
        self.types, self.native = self.run("native")
        if not self.file("outputs.npz"):
            self.notes.append("no results to compare with")
            return
        with open(self.module) as f:
            narrowest = narrowest_float(f.read())
        wrong = []
        with np.load(self.file("outputs.npz")) as z:
            for k, (name, got) in enumerate(zip(self.types, self.native)):
                reference = z[f"r{k}"] if f"r{k}" in z.files and z[f"r{k}"].dtype.kind in "fc" else None
                why, ratio = compare(got, z[f"o{k}"], reference, name, narrowest)
                if ratio:
                    self.ratios.append(ratio)
                if why and (self.name, k) in KNOWN:
                    self.notes.append(f"o{k}: {KNOWN[self.name, k]}")
                elif why:
                    wrong.append(f"o{k} {name}: {why}")
        if wrong:
            raise Failure("; ".join(wrong))

    def step_interp(self):
        types, arrays = self.run("interp", "--interp")
        other = [f"o{k}" for k, (a, b, t) in enumerate(zip(arrays, self.native, types)) if not same_bits(a, b, t)]
        if other:
            raise Failure("other bits than native: " + ", ".join(other))

    def step_verify(self):
        roads = json.loads(self.command("verify", self.module, *self.inputs(), "--json").stdout)["roads"]
        for road in roads:
            if road["verdict"] == "not tested":
                self.notes.append(f"not tested here: {road['road']}")
        if not all(r["verdict"] in ("same", "reference", "not tested") for r in roads):
            raise Failure("verify: the bits differ")

    def counts(self, module, *arguments):
        j = json.loads(self.command("opt", module, "--json", *arguments).stdout)
        return j["kernels"], j["intermediate_bytes"]

    def step_fusion(self):
        ours = self.counts(self.module)
        self.row["kernels"] = f"{ours[0]}"
        if not self.file("classic.fusion_out.hlo"):
            return
        # as it is: none of our passes moves anything
        theirs = self.counts(self.file("classic.fusion_out.hlo"), "--keep-fusions", "--passes=domain-remover")
        self.row["kernels"] = f"{ours[0]}/{theirs[0]}"
        self.row["bytes"] = f"{ours[1]}/{theirs[1]}"
        more = (ours[0] - theirs[0], ours[1] - theirs[1])
        if more[0] > 0 or more[1] > 0:
            raise Failure(f"{ours[0]} kernels, {ours[1]} bytes; XLA: {theirs[0]} kernels, {theirs[1]} bytes")

    def step_stable(self):
        first, second = (self.command("opt", self.module).stdout for _ in range(2))
        if first != second:
            raise Failure("two runs of opt print different modules")

    def refusal(self, text):
        """check holds; running is refused, with these words."""
        self.step_check()
        done = self.command("run", self.module, *self.inputs(), code=1)
        if text not in done.stderr:
            raise Failure(f"refused without naming {text!r}: {done.stderr[-300:]}")
        self.notes.append(f"refused, as it must be: {text}")

    def work(self):
        steps = ["check", "run", "interp", "verify", "fusion", "stable"]
        try:
            if self.name in REFUSED:
                return self.refusal(REFUSED[self.name])
        except Failure as e:
            self.failures.append(f"refusal: {e}")
            return None
        for step in steps:
            try:
                if step != "interp" or hasattr(self, "native"):
                    getattr(self, "step_" + step)()
                self.row[step] = "ok"
            except Failure as e:
                self.row[step] = "FAIL"
                self.failures.append(f"{step}: {e}")
        return None


def folders(root, only):
    found = []
    for folder, below, files in os.walk(root):
        below.sort()
        name = os.path.relpath(folder, root)
        if "before.hlo" in files and (not only or any(name.endswith(o) for o in only)):
            found.append(folder)
    return sorted(found)


def show(p, verbose):
    cells = " ".join(f"{s}={p.row[s]}" for s in ("kernels", "bytes") if s in p.row)
    print(f"{p.name:32} {'FAILED' if p.failures else 'ok':7}{cells}", flush=True)
    for line in p.failures + p.exceptions + (p.notes if verbose else []):
        print(f"    {line}", flush=True)


def main():
    flags = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:] if a.startswith("-"))
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    lawson = os.path.abspath(args[0] if args else "build/lawson")
    root = args[1] if len(args) > 1 else os.path.join(HERE, "..", "data", "corpus")
    only = [o for o in flags.get("only", "").split(",") if o]
    with tempfile.TemporaryDirectory() as tmp:
        programs = [Program(lawson, root, f, tmp) for f in folders(root, only)]
        with ThreadPool(int(flags.get("jobs", "2"))) as pool:
            for p in pool.imap(lambda p: (p.work(), p)[1], programs):
                show(p, "v" in flags)
    ratios = [r for p in programs for r in p.ratios]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0
    failed = sum(bool(p.failures) for p in programs)
    steps = {}
    for p in programs:
        for f in p.failures:
            steps[f.split(":")[0]] = steps.get(f.split(":")[0], 0) + 1
    print(f"rms error over XLA's, geometric mean of {len(ratios)} outputs: {mean:.3f}")
    if mean > 1.1:
        print("the mean is above 1.1: FAILED")
    over = sum(bool(p.exceptions) for p in programs)
    if over:
        print(f"programs with more kernels or bytes than XLA, by name and reason above: {over}")
    if steps:
        print("failures by step: " + ", ".join(f"{k} {v}" for k, v in sorted(steps.items())))
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed or mean > 1.1 or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
