#!/usr/bin/env python3
"""An x-ray of 2,000 instructions stays usable: the page's size, the time to
load it, the time of each interaction (the best of five: the machine is shared).

  page_large.py LAWSON [INSTRUCTIONS]
"""
import os
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

MOST_BYTES = 6 << 20
MOST_LOAD_S = 5
MOST_MS = 200


def module(n):
    """Layers of elementwise work between reductions and products."""
    pick = random.Random(7)
    lines = ["HloModule large", "", "sum {", "  a = f32[] parameter(0)",
             "  b = f32[] parameter(1)", "  ROOT s = f32[] add(a, b)", "}", "",
             "ENTRY main {", "  x = f32[256,256]{1,0} parameter(0)",
             "  zero = f32[] constant(0)"]
    live, k = ["x"], 2
    meta = 'metadata={op_name="jit(large)/layer_%d/op" source_file="large.py" source_line=%d}'

    def add(op, *operands, shape="256,256]{1,0}", rest=""):
        nonlocal k
        k += 1
        lines.append(f"  v{k} = f32[{shape} {op}({', '.join(operands)}){rest}, "
                     + meta % (k // 40, k % 97 + 1))
        return f"v{k}"

    while k < n - 1:
        a, b = pick.choice(live[-6:]), pick.choice(live[-30:])
        what = pick.random()
        if what < 0.06:
            row = add("reduce", a, "zero", shape="256]{0}",
                      rest=", dimensions={1}, to_apply=sum")
            wide = add("broadcast", row, rest=", dimensions={0}")
            live.append(add("subtract", a, wide))
        elif what < 0.09:
            live.append(add("dot", a, b, rest=", lhs_contracting_dims={1}, "
                            "rhs_contracting_dims={0}"))
        elif what < 0.3:
            live.append(add(pick.choice(["exponential", "tanh", "negate"]), a))
        else:
            live.append(add(pick.choice(["add", "multiply", "maximum"]), a, b))
    tail = live[-12:]
    total = tail[0]
    for other in tail[1:]:
        total = add("add", total, other)
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    return "\n".join(lines + ["}", ""])


# From the action to the next frame that is on the screen.
TIMED = """(act) => new Promise((done) => {
  const start = performance.now();
  new Function(act)();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""

ACTIONS = {
    "a step of the queue": "const s = document.getElementById('slider');"
        "s.value = (+s.value + 7) % +s.max; s.dispatchEvent(new Event('input'))",
    "choose a kernel": "const b = document.querySelectorAll('#drawing .box');"
        "b[(window.k = (window.k || 0) + 31) % b.length].dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))",
    "choose an edge": "const e = document.querySelectorAll('#drawing .edge');"
        "e[(window.j = (window.j || 0) + 37) % e.length].dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))",
    "search": "const q = document.getElementById('search'); q.value = 'v1'"
        " + (window.q = (window.q || 0) + 1); q.dispatchEvent(new Event('input'))",
    "zoom": "document.querySelector('[aria-label=Larger]').click()",
    "show the memory": "document.getElementById('tab-memory').click()",
    "show the graph": "document.getElementById('tab-graph').click()",
    "show the HLO": "document.getElementById('tab-hlo').click()",
    "light a line": "const l = document.querySelectorAll('#lines-before "
        "[data-v]'); l[(window.l = (window.l || 0) + 100) % l.length].click()",
}


def main():
    browser.need()
    lawson = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chrome:
        source, path = f"{folder}/large.hlo", f"{folder}/large.html"
        with open(source, "w") as f:
            f.write(module(n))
        start = time.time()
        r = subprocess.run([lawson, "xray", source, "--fusion=xla",
                            "--target=cpu-generic", "-o", path],
                           capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
        print(f"made in {time.time() - start:.1f} s: {r.stdout.splitlines()[1]}")
        size = os.path.getsize(path)
        load = MOST_LOAD_S
        for _ in range(3):
            start = time.time()
            w = browser.Watched(chrome, path)
            w.page.wait_for_selector("#kernels-now")
            load = min(load, time.time() - start)
            if load < MOST_LOAD_S / 2:
                break
            w.close()
        else:
            w = browser.Watched(chrome, path)
        print(f"{size} bytes, loaded in {load:.2f} s")
        slow = []
        for what, act in ACTIONS.items():
            times = [w.page.evaluate(TIMED, act) for _ in range(5)]
            print(f"{what:22} best {min(times):6.1f} ms, worst {max(times):6.1f}")
            slow += [what] if min(times) > MOST_MS else []
        w.close()
    assert size <= MOST_BYTES, size
    assert load < MOST_LOAD_S, load
    assert not slow, slow


if __name__ == "__main__":
    main()
