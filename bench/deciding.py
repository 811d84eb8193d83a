#!/usr/bin/env python3
"""How long deciding takes, as modules grow.

deciding.py FUSION_TOOL [--sizes=500,1000,...] [--shapes=A,B] [--configs=C,D]
            [--limit=SECONDS] [--markdown] [--write=DIR]

For each shape of graph, each target and strategy, a module of about n fusible
instructions is fused, and the passes' CPU time is taken (reading, printing and
compiling are left out; decision records are kept, as explain keeps them). Prints
milliseconds a size and the growth exponent over the upper half of the sizes: 1
is linear, 2 quadratic. FUSION_TOOL is the build's tests/fusion/fusion_tool. A
run beyond the limit is killed, shown as >, and ends its row.
--write keeps the modules; nothing is run when no tool is given."""
import math
import os
import re
import subprocess
import sys
import tempfile

ADD = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
"""


class Module:
    """Text of one module; values are names, shapes are of f32."""

    def __init__(self, dims=(1024, 64)):
        self.lines, self.head, self.n, self.params = [], "", 0, 0
        self.dims = dims

    def shape(self, dims=None):
        dims = self.dims if dims is None else dims
        order = ",".join(str(k) for k in reversed(range(len(dims))))
        return f"f32[{','.join(map(str, dims))}]" + ("{" + order + "}" if dims else "")

    def op(self, name, *operands, dims=None, attrs=""):
        self.n += 1
        self.lines.append(f"v{self.n} = {self.shape(dims)} {name}({', '.join(operands)}){attrs}")
        return f"v{self.n}"

    def param(self, dims=None):
        self.params += 1
        return self.op("parameter", str(self.params - 1), dims=dims)

    def text(self, *outputs, shapes=None):
        if len(outputs) > 1:
            shapes = shapes or [self.shape()] * len(outputs)
            self.lines.append(f"out = ({', '.join(shapes)}) tuple({', '.join(outputs)})")
        lines = list(self.lines)
        lines[-1] = "ROOT " + lines[-1]
        body = "".join(f"  {line}\n" for line in lines)
        return f"HloModule deciding\n\n{self.head}ENTRY main {{\n{body}}}\n"


CHEAP = ["negate", "abs", "floor", "ceil"]


def chain(n):
    """One unary op after another."""
    m = Module()
    v = m.param()
    for k in range(n):
        v = m.op(CHEAP[k % 4], v)
    return m.text(v)


def expensive(n):
    """The same of functions that cost hundreds of cycles."""
    m = Module()
    v = m.param()
    for k in range(n):
        v = m.op(["tanh", "exponential", "sine", "logistic"][k % 4], v)
    return m.text(v)


def steps(n):
    """Each step reads a parameter of its own."""
    m = Module()
    p = [m.param() for _ in range(max(n // 2, 1))]
    v = m.param()
    for k in range(n):
        v = m.op("add", v, p[k % len(p)]) if k % 2 else m.op("negate", v)
    return m.text(v)


def diamonds(n):
    """x -> (a, b) -> x, again and again."""
    m = Module()
    v = m.param()
    for _ in range(n // 3):
        a, b = m.op("negate", v), m.op("abs", v)
        v = m.op("add", a, b)
    return m.text(v)


def wide(n):
    """One value, n readers, summed by a tree."""
    m = Module()
    v = m.op("negate", m.param())
    level = [m.op(CHEAP[k % 4], v) for k in range(n // 2)]
    while len(level) > 1:
        level = [m.op("add", *level[k:k + 2]) if k + 1 < len(level) else level[k]
                 for k in range(0, len(level), 2)]
    return m.text(level[0])


def fan(n):
    """Fan-out to 32 readers and back, again and again."""
    m = Module()
    v = m.param()
    for _ in range(max(n // 63, 1)):
        level = [m.op(CHEAP[k % 4], v) for k in range(32)]
        while len(level) > 1:
            level = [m.op("add", level[k], level[k + 1]) for k in range(0, len(level), 2)]
        v = level[0]
    return m.text(v)


def dense(n):
    """Each op reads two values of the layer before; all of the last are results."""
    m = Module()
    layer = [m.param() for _ in range(16)]
    for k in range(max(n // 16, 1)):
        layer = [m.op(["add", "multiply", "maximum"][(k + j) % 3], layer[j], layer[(j * 5 + k + 1) % 16])
                 for j in range(16)]
    return m.text(*layer)


def outputs(n):
    """A chain every value of which is a result."""
    m = Module()
    v, out = m.param(), []
    for k in range(n):
        v = m.op(CHEAP[k % 4], v)
        out.append(v)
    return m.text(*out)


def shared(n):
    """Unary ops that a dozen later ones read again (skips of growing length)."""
    m = Module()
    v = [m.param()]
    for k in range(n):
        v.append(m.op("negate", v[-1]) if k % 2 else m.op("add", v[-1], v[len(v) * 7 // 8]))
    return m.text(v[-1])


def movers(n):
    """Transposes, slices and pads between elementwise ops."""
    m = Module((64, 64))
    v = m.param()
    zero = m.op("constant", "0", dims=())
    for k in range(n // 4):
        a = m.op("transpose", v, attrs=", dimensions={1,0}")
        b = m.op("slice", m.op("negate", a), dims=(63, 64), attrs=", slice={[0:63], [0:64]}")
        v = m.op("pad", b, zero, attrs=", padding=0_1x0_0")
    return m.text(v)


def reduces(n):
    """Softmax-like steps: a row's sum, broadcast back, subtracted."""
    m = Module()
    m.head = ADD
    zero = m.op("constant", "0", dims=())
    v = m.param()
    for _ in range(n // 4):
        r = m.op("reduce", v, zero, dims=(1024,), attrs=", dimensions={1}, to_apply=add")
        b = m.op("broadcast", r, attrs=", dimensions={0}")
        v = m.op("exponential", m.op("subtract", v, b))
    return m.text(v)


def loops(n):
    """Many while loops of a dozen ops each."""
    m = Module((64,))
    v, heads = m.param(), []
    for k in range(max(n // 12, 1)):
        b = Module((64,))
        b.lines = ["p = (s32[], f32[64]{0}) parameter(0)", "i = s32[] get-tuple-element(p), index=0",
                   "x = f32[64]{0} get-tuple-element(p), index=1", "one = s32[] constant(1)",
                   "j = s32[] add(i, one)"]
        x = "x"
        for j in range(8):
            x = b.op(CHEAP[j % 4], x)
        b.lines.append(f"t = (s32[], f32[64]{{0}}) tuple(j, {x})")
        b.lines[-1] = "ROOT " + b.lines[-1]
        heads.append(f"body{k} {{\n" + "".join(f"  {line}\n" for line in b.lines) + "}\n")
        heads.append(f"cond{k} {{\n  p = (s32[], f32[64]{{0}}) parameter(0)\n"
                     "  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(10)\n"
                     "  ROOT c = pred[] compare(i, n), direction=LT\n}\n")
        m.lines.append(f"z{k} = s32[] constant(0)")
        m.lines.append(f"t{k} = (s32[], f32[64]{{0}}) tuple(z{k}, {v})")
        m.lines.append(f"w{k} = (s32[], f32[64]{{0}}) while(t{k}), condition=cond{k}, body=body{k}")
        v = m.op("get-tuple-element", f"w{k}", attrs=", index=1")
    m.head = "".join(heads)
    return m.text(v)


def siblings(n):
    """Reduces over the same values: candidates for several outputs."""
    m = Module()
    m.head = ADD
    zero = m.op("constant", "0", dims=())
    p = [m.param() for _ in range(max(n // 64, 1))]
    out = []
    for k in range(n // 2):
        e = m.op(["exponential", "tanh"][k % 2], p[k % len(p)])
        out.append(m.op("reduce", e, zero, dims=(1024,), attrs=", dimensions={1}, to_apply=add"))
    return m.text(*out, shapes=[m.shape((1024,))] * len(out))


def updates(n):
    """Optimiser steps: many small independent groups, each with two results."""
    m = Module()
    out = []
    for _ in range(max(n // 6, 1)):
        w, g, s = m.param(), m.param(), m.param()
        a = m.op("multiply", g, g)
        b = m.op("add", m.op("negate", a), s)
        c = m.op("multiply", m.op("rsqrt", b), g)
        out += [m.op("subtract", w, c), b]
    return m.text(*out)


SHAPES = {f.__name__: f for f in (chain, expensive, steps, diamonds, wide, fan, dense, shared, outputs, movers,
                                  reduces, siblings, updates, loops)}
XLA_GPU = "variadic-op-splitter,sort-iota-fusion,gpu-priority-fusion,fusion-cse,dce,gpu-multi-output-fusion,fusion-cse,dce"
CONFIGS = {"cpu priority": ("cpu-generic", "priority"), "cpu xla": ("cpu-generic", "fusion"),
           "h100 xla": ("h100", XLA_GPU)}


def milliseconds(tool, path, target, passes, limit):
    """CPU time of the passes; None beyond the limit, a string for an error."""
    try:
        run = subprocess.run([tool, passes, path, "none"], capture_output=True, text=True, timeout=limit,
                             env={**os.environ, "LW_TARGET": target})
    except subprocess.TimeoutExpired:
        return None
    found = re.match(r"([\d.]+) ms", run.stderr)
    return float(found.group(1)) if found and run.returncode == 0 else (run.stderr or "killed").split("\n")[0]


def exponent(points):
    """Least squares of log time over log size, upper half of the sizes."""
    points = [(math.log(n), math.log(max(t, 0.1))) for n, t in points if isinstance(t, float)]
    points = points[-max(3, (len(points) + 1) // 2):]
    if len(points) < 2:
        return float("nan")
    mx, my = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    return sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, y in points)


def cell(t):
    return "> limit" if t is None else t[:40] if isinstance(t, str) else f"{t:.0f}" if t >= 10 else f"{t:.1f}"


def main():
    flags = dict(f[2:].split("=", 1) if "=" in f else (f[2:], "") for f in sys.argv[1:] if f.startswith("--"))
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    sizes = [int(s) for s in flags.get("sizes", "500,1000,2000,5000,10000,20000").split(",")]
    shapes = flags["shapes"].split(",") if "shapes" in flags else list(SHAPES)
    configs = flags["configs"].split(",") if "configs" in flags else list(CONFIGS)
    limit = float(flags.get("limit", "60"))
    bar = "|" if "markdown" in flags else " "
    with tempfile.TemporaryDirectory() as scratch:
        folder = flags.get("write", scratch)
        os.makedirs(folder, exist_ok=True)
        heads = ["shape", "target, strategy", *map(str, sizes), "exponent"]
        print(bar + bar.join(f" {h} " for h in heads) + bar)
        if bar == "|":
            print("|" + "---|" * len(heads))
        for shape in shapes:
            paths = [os.path.join(folder, f"{shape}{n}.hlo") for n in sizes]
            for n, path in zip(sizes, paths):
                open(path, "w").write(SHAPES[shape](n))
            for config in configs if args else []:
                target, passes = CONFIGS[config]
                points = []
                for n, path in zip(sizes, paths):
                    points.append((n, milliseconds(args[0], path, target, passes, limit)))
                    if not isinstance(points[-1][1], float):
                        break
                cells = [cell(t) for _, t in points] + ["-"] * (len(sizes) - len(points))
                row = [shape, config, *cells, f"{exponent(points):.2f}"]
                print(bar + bar.join(f" {c} " for c in row) + bar, flush=True)


if __name__ == "__main__":
    main()
