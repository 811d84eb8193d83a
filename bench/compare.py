#!/usr/bin/env python3
"""Lawson against XLA:CPU on the same HLO modules, on this machine.

  compare.py [--lawson=PATH] [--rounds=N] [--runs=N] [--compile-only] [--threads=N] MODULE.hlo...

For each module the two take turns, in the order A B B A A B B A ..., `rounds` turns each. In a turn a contender
compiles the module anew and runs it `runs` times, the first runs uncounted; the turn's time is the median. A ratio is
Lawson's time over XLA's of one pair of neighbouring turns, so load that comes and goes hits both. The table gives the
least, the median and the largest ratio; a ratio below 1 says Lawson is quicker.

Times are given as CPU time of all threads, which other load disturbs least (a thread that spins for work counts), and as
wall time; both are medians over the turns. A compile starts from a parsed module.

Inputs: inputs.npz (p0, p1, ...) next to the module, else seeded normal numbers and small integers. Donated inputs are
restored outside the time taken. Needs jax: run it with the Python of .venv (or $LW_PYTHON).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WARM = 2  # runs of a turn that are not counted

NAMES = {"PRED": "bool", "S4": "int4", "U4": "uint4", "S8": "int8", "S16": "int16", "S32": "int32", "S64": "int64",
         "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "F16": "float16", "BF16": "bfloat16",
         "F32": "float32", "F64": "float64", "C64": "complex64", "C128": "complex128", "F8E5M2": "float8_e5m2",
         "F8E4M3": "float8_e4m3", "F8E4M3FN": "float8_e4m3fn", "F8E3M4": "float8_e3m4",
         "F8E4M3B11FNUZ": "float8_e4m3b11fnuz", "F8E5M2FNUZ": "float8_e5m2fnuz",
         "F8E4M3FNUZ": "float8_e4m3fnuz", "F8E8M0FNU": "float8_e8m0fnu", "F4E2M1FN": "float4_e2m1fn"}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("modules", nargs="+")
    p.add_argument("--lawson", default=os.path.join(HERE, "..", "build", "release", "lawson"))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--runs", type=int, default=9)
    p.add_argument("--threads", type=int, default=0, help="0: all cores; 1 also pins XLA to one core")
    p.add_argument("--compile-only", action="store_true")
    p.add_argument("--json", action="store_true", help="one object a module instead of the table")
    return p.parse_args()


def dtype_of(name):
    import ml_dtypes
    import numpy as np
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def make_input(rng, dims, name):
    import numpy as np
    d = dtype_of(name)
    if name == "bool":
        return rng.random(dims) < 0.5
    if name.startswith("complex"):
        return (rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(d)
    if name.startswith(("int", "uint")):
        return rng.integers(0, 8, dims).astype(d)
    return rng.standard_normal(dims, dtype=np.float32).astype(d)


def bits(a):
    """As an npz file holds it: types numpy does not know as unsigned integers."""
    import numpy as np
    a = np.asarray(a)
    if a.dtype.name in ("bool", "float16") or a.dtype.kind in "iuc" or a.dtype.name in ("float32", "float64"):
        return a if a.dtype.name not in ("int4", "uint4") else a.view(np.uint8)
    return np.ascontiguousarray(a).view(np.uint16 if a.dtype.itemsize == 2 else np.uint8)


class Xla:
    def __init__(self, threads):
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        if threads == 1:
            os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import jax
        import jaxlib._hlo as hlo
        from jaxlib import lapack, xla_client
        jax.config.update("jax_enable_x64", True)
        lapack._lapack.initialize()
        self.jax, self.hlo, self.xc = jax, hlo, xla_client
        self.device = jax.devices("cpu")[0]

    def load(self, path):
        with open(path) as f:
            proto = self.hlo.hlo_module_from_text(f.read()).as_serialized_hlo_module_proto()
        shape = self.hlo.XlaComputation(proto).program_shape()
        self.params = []
        for s in shape.parameter_shapes():
            e = s.xla_element_type()
            self.params.append((s.dimensions(), NAMES[e.name if hasattr(e, "name") else str(e).split(".")[-1]]))
        self.program = self.xc._xla.mlir.hlo_to_stablehlo(proto)

    def inputs(self, path):
        import numpy as np
        kept = os.path.join(os.path.dirname(os.path.abspath(path)), "inputs.npz")
        out = []
        if os.path.exists(kept) and os.path.basename(path) == "before.hlo":
            z = np.load(kept)
            for i, (dims, name) in enumerate(self.params):
                a, d = z["p%d" % i], dtype_of(name)
                if a.dtype != d:
                    a = a.view(np.int8).astype(d) if name in ("int4", "uint4") else np.ascontiguousarray(a).view(d)
                out.append(a.reshape(dims))
            return out
        rng = np.random.default_rng(0)
        return [make_input(rng, dims, name) for dims, name in self.params]

    def compile(self):
        cpu, wall = time.process_time(), time.perf_counter()
        devices = self.xc.DeviceList((self.device,))
        self.exe = self.device.client.compile_and_load(self.program, devices, self.xc.CompileOptions())
        times = {"wall": (time.perf_counter() - wall) * 1e3, "cpu": (time.process_time() - cpu) * 1e3}
        head = self.exe.hlo_modules()[0].to_string().split("\n", 1)[0]
        self.donates = "input_output_alias" in head or "buffer_donor" in head
        return times

    def run(self, args, n):
        put = lambda: [self.jax.block_until_ready(self.jax.device_put(a, self.device)) for a in args]
        on_device, times, cpu = put(), [], 0.0
        for k in range(n + WARM):
            if k == WARM:
                cpu = time.process_time()
            if self.donates and k:
                on_device = put()
            t = time.perf_counter()
            for o in self.exe.execute(on_device):
                o.block_until_ready()
            times.append((time.perf_counter() - t) * 1e3)
        return statistics.median(times[WARM:]), (time.process_time() - cpu) * 1e3 / n


def lawson_turn(o, path, npz):
    cmd = [o.lawson, "run", path, "--json", "--inputs=" + npz, "--threads=%d" % o.threads]
    if not o.threads:
        cmd.pop()
    cmd.append("--repeat=%d" % (1 if o.compile_only else o.runs))
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=600)
    j = json.loads(r.stdout) if r.stdout.startswith("{") else {}
    if "compile_ms" not in j:
        raise RuntimeError((r.stderr.strip() or r.stdout.strip()).split("\n")[0][:100])
    return {"wall": j["compile_ms"], "cpu": j["compile_parts_ms"]["cpu"], "run": j["time_ms"]["median"],
            "run_cpu": j["time_ms"]["cpu"], "peak": j["peak_bytes"]}


def xla_turn(o, xla, args):
    t = xla.compile()
    if not o.compile_only:
        t["run"], t["run_cpu"] = xla.run(args, o.runs)
    return t


def spread(v):
    return {"min": min(v), "median": statistics.median(v), "max": max(v)}


def compare(o, xla, path, folder):
    import numpy as np
    xla.load(path)
    args = xla.inputs(path)
    npz = os.path.join(folder, "in.npz")
    np.savez(npz, **{"p%d" % i: bits(a) for i, a in enumerate(args)})
    ours, theirs = [], []
    for k in range(o.rounds):
        first, second = (ours, theirs) if k % 2 == 0 else (theirs, ours)
        for who in (first, second):
            who.append(lawson_turn(o, path, npz) if who is ours else xla_turn(o, xla, args))
    median = lambda w, key: statistics.median(t[key] for t in w)
    r = {"module": path, "peak_bytes": ours[0]["peak"]}
    for key in ("cpu", "wall"):
        r["compile_" + key] = {"lawson_ms": median(ours, key), "xla_ms": median(theirs, key),
                               "ratio": spread([a[key] / b[key] for a, b in zip(ours, theirs)])}
    if not o.compile_only:
        for key in ("run_cpu", "run"):
            r[key] = {"lawson_ms": median(ours, key), "xla_ms": median(theirs, key),
                      "ratio": spread([a[key] / b[key] for a, b in zip(ours, theirs)])}
    return r


def cell(x):
    return "%9.3f %9.3f  %5.2f (%.2f..%.2f)" % (x["lawson_ms"], x["xla_ms"], x["ratio"]["median"], x["ratio"]["min"],
                                                x["ratio"]["max"])


def main():
    o = options()
    xla = Xla(o.threads)
    bad = 0
    if not o.json:
        heads = ["compile, CPU ms: lawson xla ratio", "compile, wall ms"]
        heads += [] if o.compile_only else ["run, CPU ms of all threads", "run, wall ms"]
        print("%-28s %s" % ("", "".join("%-42s" % h for h in heads)))
    with tempfile.TemporaryDirectory() as folder:
        for path in o.modules:
            base = os.path.basename(path)
            name = os.path.basename(os.path.dirname(path)) if base == "before.hlo" else os.path.splitext(base)[0]
            try:
                r = compare(o, xla, path, folder)
            except Exception as e:  # one module that either refuses does not end the table
                print("%-28s %s" % (name, str(e).split("\n")[0][:120]), flush=True)
                bad += 1
                continue
            if o.json:
                print(json.dumps(r), flush=True)
            else:
                parts = ["compile_cpu", "compile_wall"] + ([] if o.compile_only else ["run_cpu", "run"])
                print("%-28s %s" % (name, "   ".join("%-39s" % cell(r[p]) for p in parts)), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
