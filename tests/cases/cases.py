#!/usr/bin/env python3
"""Small programs from public bug reports, each with the right answer (tests/data/cases/*/expected.md).

  cases.py LAWSON [NAME...]     runs all, or those whose name contains NAME

Every case runs by every road: the interpreter, unfused, fused by XLA's rules, fused by Lawson's own; the answer must be right
and the bits equal on all of them.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "cases")
ROADS = [["--interp"], ["--fusion=none"], ["--fusion=xla"], ["--fusion=priority"]]
LAWSON = sys.argv[1] if len(sys.argv) > 1 else "build/lawson"


def case_file(name, file="before.hlo"):
    folder = next(d for d in sorted(os.listdir(DATA)) if d.startswith(name))
    return os.path.join(DATA, folder, file)


def run(module, inputs, road, text=None, extra=()):
    """Outputs of one run, in order."""
    with tempfile.TemporaryDirectory() as tmp:
        np.savez(tmp + "/in.npz", **{f"p{i}": a for i, a in enumerate(inputs)})
        command = [LAWSON, "run", "-" if text else module, "--inputs", tmp + "/in.npz", "--save", tmp + "/out.npz", *road, *extra]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
        out = np.load(tmp + "/out.npz")
        return [out[f"o{i}"] for i in range(len(out.files))]


def bits(a):
    a = np.ascontiguousarray(a)
    flat = a.reshape(-1).view(np.uint8).copy()
    if a.dtype.kind == "f":  # any NaN equals any NaN
        nan = np.isnan(a.reshape(-1))
        flat.reshape(len(nan), -1)[nan] = 0xFF
    return flat.tobytes()


def all_roads(module, inputs, text=None):
    first = None
    for road in ROADS:
        out = run(module, inputs, road, text)
        if first is None:
            first = out
        elif [bits(a) for a in out] != [bits(a) for a in first]:
            raise AssertionError(f"{module}: {road} differs from the interpreter")
    return first


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def case_01():
    a, b = np.float32(2396747.0), np.float32(7.0)
    check(all_roads(case_file("01"), [a, a, b, b])[0] == 0, "p*s - q*r must cancel")
    big = [np.float32(1e20), np.float32(-1e20), np.float32(1e10)]
    check(all_roads(case_file("01", "before_big.hlo"), big)[0] == 0, "a*x + b*x must cancel")


def case_02():
    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    want = x + 1
    want[1:] = (x + 1)[:-1]
    check((all_roads(case_file("02"), [x])[0][0] == want).all(), "rows shifted down by one")
    tiny = all_roads(case_file("02", "before_tiny.hlo"), [np.arange(4, dtype=np.int32).reshape(4, 1, 1)])[0]
    check(tiny.ravel().tolist() == [1, 1, 2, 3], f"tiny form gave {tiny.ravel()}")


def case_05():
    t = np.array([1e-40, 1.4e-45, 1.1754942e-38, -1e-40], np.float32)
    with np.errstate(all="ignore"):
        want = {"log": np.log(t), "sqrt": np.sqrt(t), "eq0": (t == 0).astype(np.float32), "mul2": t * np.float32(2),
                "times_inf": t * np.float32(np.inf), "add0": t + np.float32(0)}
    for name, w in want.items():
        got = all_roads(case_file("05", f"before_{name}.hlo"), [t])[0]
        check(np.allclose(got, w, rtol=1e-6, atol=0, equal_nan=True), f"{name}: {got} instead of {w}")


def case_06():
    shape = (3, 1, 2, 2, 8, 8, 8)
    u = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7
    v = np.ones(shape, np.float32)
    check((all_roads(case_file("06"), [u, v])[0] == (u * v).sum(3)).all(), "sum over axis 3")


def case_09():
    x = np.linspace(0, 40, 1 << 22).astype(np.float32)
    got = float(all_roads(case_file("09"), [x])[0])
    check(abs(got - 78131.0775) < 0.5, f"sum(cos) gave {got}")


def case_10():
    x = np.random.default_rng(0).normal(size=(192, 192, 192)).astype(np.float32)
    got = float(all_roads(case_file("10"), [x])[0])
    check(abs(got - 42211122.0943) / 42211122.0943 < 1e-6, f"sum of squares gave {got}")


def case_12():
    for name in ("no-such-pass", "Fusion", " fusion"):
        done = subprocess.run([LAWSON, "opt", case_file("12"), f"--disable={name}"], capture_output=True, text=True)
        check(done.returncode == 2, f"--disable='{name}' exits with {done.returncode}, not 2")
        check(name.strip() in done.stderr, "the message names the pass")
    done = subprocess.run([LAWSON, "opt", case_file("12"), "--disable=priority-fuson"], capture_output=True, text=True)
    check("priority-fusion" in done.stderr, "the nearest name is suggested")


def case_15():
    def bf16(a):  # round to nearest even, kept in f32
        u = np.asarray(a, np.float32).view(np.uint32)
        u = (u + 0x7FFF + ((u >> 16) & 1)) & np.uint32(0xFFFF0000)
        return u.view(np.float32)

    def codes(a):
        return (np.ascontiguousarray(bf16(a)).view(np.uint32) >> 16).astype(np.uint16)

    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    got = all_roads(case_file("15"), [x])[0]
    check((got == bf16(x)).all(), "f32 -> bf16 -> f32 rounds")
    a, b = bf16(x[:500]), bf16(x[500:])
    want = bf16(b - bf16(bf16(a + b) - a))
    got = all_roads(case_file("15", "before_residual.hlo"), [codes(a), codes(b)])[0]
    check((got == codes(want)).all() and (want != 0).sum() == 184, "y - ((x + y) - x) keeps its rounding error")
    all_roads(case_file("15", "before_chain.hlo"), [codes(a), codes(b)])


def case_16():
    x = np.repeat(np.array([0, 1 / 3, 2 / 3, 1], np.float16)[:, None], 4, 1)
    for k in (0, 2, 3):
        got = all_roads(case_file("16"), [x, np.array([k], np.int32)])[0]
        check((got[0] == x[k] + np.float16(1)).all(), f"row {k}")


def case_17():
    times = {}
    for n in (50_000, 100_000, 200_000):
        out = subprocess.run([LAWSON, "run", case_file("17", f"before_{n}.hlo"), "--repeat=20", "--json"], capture_output=True, text=True)
        check(out.returncode == 0, out.stderr[-1000:])
        times[n] = json.loads(out.stdout)["time_ms"]["min"]
    # a step must not copy the array, which for the longest would take 20 us or more; a busy machine makes it 0.1 us
    check(all(t / n * 1000 < 1 for n, t in times.items()), f"ms for n steps, more than 1 us each: {times}")
    small = all_roads(case_file("17", "before_50000.hlo"), [np.float32(0.1)])[0]
    x = np.float32(0.1)
    for t in range(100):
        check(small[t] == x, f"element {t}")
        x = np.float32(np.float32(3.7) * x) * (np.float32(1) - x)


def case_18():
    x = np.array([np.nan, 1, 3, 2], np.float32)
    big = np.ones(37, np.float32)
    big[5] = np.nan
    five, nan = np.float32(5), np.float32(np.nan)
    runs = {"reduce_param": [x], "reduce_const": [], "reduce_37": [big], "max": [five, nan], "min": [nan, five], "clamp": [nan]}
    for name, inputs in runs.items():
        check(np.isnan(all_roads(case_file("18", f"before_{name}.hlo"), inputs)[0]), f"{name} must be NaN")


def case_21():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.exp(rng.uniform(-20, 4, 40)), [1e-40, 1.1754942e-38, 0.5, 1.0, 88.7, 1e-8, 3e38, -1, 0.1, 2, 1e3, 1e5,
                                                                7, 9, 0.3, 1.5, 2.5, -3, 100, 1e-3]]).astype(np.float32)
    ops = ["exponential", "log", "tanh", "sine", "cosine", "log-plus-one", "exponential-minus-one", "logistic", "rsqrt", "sqrt", "cbrt",
           "erf", "tan"]

    def text(n):
        lines = [f"  r{i} = f32[{n}] {op}(x)" for i, op in enumerate(ops)]
        shapes = ", ".join(f"r{i}" for i in range(len(ops)))
        types = ", ".join([f"f32[{n}]"] * len(ops))
        return f"HloModule m\n\nENTRY e {{\n  x = f32[{n}] parameter(0)\n" + "\n".join(lines) + f"\n  ROOT t = ({types}) tuple({shapes})\n}}\n"

    n_all = len(values)
    want = all_roads("length-dependent", [values], text(n_all))
    for n in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 47):
        for at in range(0, n_all - n + 1, max(1, n // 2 + 5)):
            got = run("m", [values[at:at + n]], ["--fusion=priority"], text(n))
            for op, g, w in zip(ops, got, want):
                check(bits(g) == bits(w[at:at + n]), f"{op}: length {n} at {at} changes bits")


def random_elementwise(seed, steps=8):
    """The case's generator, as HLO text: nine kinds of steps over two vectors."""
    r = np.random.default_rng(seed)
    lines, values, count = [], ["x", "y"], [0]

    def emit(expression):
        count[0] += 1
        name = f"v{count[0]}"
        lines.append(f"  {name} = f32[1000] {expression}")
        return name

    def constant(v):
        count[0] += 1
        lines.append(f"  c{count[0]} = f32[] constant({v})")
        return emit(f"broadcast(c{count[0]}), dimensions={{}}")

    for _ in range(steps):
        kind, p, q = int(r.integers(0, 9)), float(r.random()), float(r.random())
        a, b = values[int(p * len(values))], values[int(q * len(values))]
        values.append([
            lambda: emit(f"add({a}, {b})"), lambda: emit(f"subtract({a}, {b})"), lambda: emit(f"multiply({a}, {b})"),
            lambda: emit("add(" + emit(f"multiply({a}, {b})") + f", {a})"), lambda: emit(f"tanh({a})"), lambda: emit(f"maximum({a}, {b})"),
            lambda: emit("subtract(" + emit(f"multiply({a}, {constant(0.3)})") + ", " + emit(f"multiply({b}, {constant(0.7)})") + ")"),
            lambda: emit("exponential(" + emit("multiply(" + emit("negate(" + a + ")") + ", " + a + ")") + ")"),
            lambda: emit("divide(" + a + ", " + emit("add(" + emit("abs(" + b + ")") + ", " + constant(1) + ")") + ")")][kind]())
    body = "\n".join(lines)
    return f"HloModule m\n\nENTRY e {{\n  x = f32[1000] parameter(0)\n  y = f32[1000] parameter(1)\n{body}\n  ROOT r = f32[1000] copy({values[-1]})\n}}\n"


def case_22():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=1000).astype(np.float32), rng.normal(size=1000).astype(np.float32)
    for seed in range(int(os.environ.get("LW_CASE22", "24"))):
        all_roads(f"seed {seed}", [x, y], random_elementwise(seed))
    all_roads(case_file("22"), [x])


def main():
    cases = {n[5:]: f for n, f in globals().items() if n.startswith("case_") and n != "case_file"}
    wanted = sys.argv[2:]
    passed = failed = 0
    for name, f in sorted(cases.items()):
        if wanted and not any(w in name for w in wanted):
            continue
        try:
            f()
            passed += 1
            print(f"case {name}: ok", flush=True)
        except AssertionError as e:
            failed += 1
            print(f"case {name}: FAILED: {e}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
