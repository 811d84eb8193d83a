#!/usr/bin/env python3
"""The laboratory from Python: functions in, answers and pages out.

  python_api.py LAWSON SHARE     (run by a Python with jax)"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("skipped: jax is not installed")
    sys.exit(77)

LAWSON = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.abspath(sys.argv[2]) + "/python")
os.environ["JAX_PLATFORMS"] = "cpu"
import lawson  # noqa: E402

failed = []


def expect(condition, what):
    if not condition:
        failed.append(what)
        print("FAILED:", what)


def f(x, y):
    return jnp.sum(jnp.tanh(x) * y, axis=1)


x = jnp.ones((64, 32))
y = jnp.ones((64, 32))
expect(os.path.samefile(lawson.binary(), LAWSON), "the binary beside it")

why = lawson.explain(f, x, y)
expect(why and why.data["schema"] == "lawson.explain/1", why.data)
expect("jit_f" in str(why) and why._repr_html_().startswith("<pre>"), why)
jitted = lawson.explain(jax.jit(f), x, y, fusion="none")
expect(jitted.data["fusion"] == "none", "options are the command's")

moved = lawson.diff(f, x, y, b="--fusion=none")
expect(not moved and moved.data["verdict"] == "MOVED", moved.data)
expect(lawson.diff(f, x, y, b="--fusion=priority"), "SAME is yes")

edges = lawson.ablate(f, x, y, edges=True)
expect(any(r["verdict"] == "MOVED" for r in edges.data["rows"]), edges)

page = lawson.xray(f, x, y)
expect("<html" in page.page and "jit_f" in page.page, page.page[:200])
shown = page._repr_html_()
expect(shown.startswith("<iframe srcdoc=") and "<html" not in shown,
       "the page is quoted")
with tempfile.TemporaryDirectory() as tmp:
    page.save(tmp + "/page.html")
    expect(os.path.getsize(tmp + "/page.html") > 1000, "saved")

    # A user's own program, captured.
    program = tmp + "/train.py"
    with open(program, "w") as file:
        file.write("import jax, jax.numpy as jnp\n"
                   "step = jax.jit(lambda x: jnp.tanh(x) * x)\n"
                   "print('loss', step(jnp.ones((8, 8))).sum())\n")
    env = dict(os.environ, XLA_FLAGS="--xla_cpu_enable_fast_min_max=false")
    done = subprocess.run([LAWSON, "capture", "-o", tmp + "/kept", "--",
                           sys.executable, program],
                          capture_output=True, text=True, env=env)
    expect(done.returncode == 0 and "loss" in done.stdout, done.stderr)
    expect("jit__lambda" in done.stdout, done.stdout)
    told = subprocess.run([LAWSON, "explain", tmp + "/kept",
                           "--module=jit__lambda", "--json"],
                          capture_output=True, text=True)
    expect(told.returncode == 0, told.stderr)
    expect(json.loads(told.stdout or "{}").get("module") == "jit__lambda",
           told.stdout[:200])

try:
    lawson.explain(f, x, y, fusion="nope")
    expect(False, "a wrong option is an error")
except lawson.LawsonError as error:
    expect("nope" in str(error), error)

print("failed:", len(failed))
sys.exit(1 if failed else 0)
