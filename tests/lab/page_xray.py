#!/usr/bin/env python3
"""The x-ray page in a browser: slider, why-panel, tabs, search, predict, keys.

  page_xray.py LAWSON [--screenshots DIR]
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
ATTENTION = f"{DATA}/corpus/attn_f32_64x64/before.hlo"
WITH_SOURCES = f"{DATA}/corpus/attn_f32_64x64/before.dump.txt"


def run(*args):
    r = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    assert r.returncode == 0, (args, r.returncode, r.stderr)
    return r.stdout


def model_of(path):
    text = open(path, encoding="utf-8").read()
    return json.loads(re.search(r'id="model">(.*?)</script>', text, re.S)[1])


def text(page, selector):
    return page.inner_text(selector)


# ---- each takes a page and its model ----

def first_screen(page, m):
    head = text(page, "#head")
    assert m["module"] in head and m["target"] in head
    assert f"{m['head']['kernels_before']} → {m['head']['kernels_after']}" in head
    assert m["label"] in head and "kept off DRAM" in head and "wall" in head
    assert page.title() == f"{m['module']}: fusion x-ray"
    page.click("#view-boxes")
    drawn = page.locator("#drawing .box:not(.none)").count()
    assert drawn == m["head"]["kernels_after"], drawn
    walls = page.locator("#drawing .ink.wall")
    assert walls.count() == 4, walls.count()
    widths = [float(w) for w in page.eval_on_selector_all(
        "#drawing .ink.memory, #drawing .ink.wall",
        "l => l.map(e => parseFloat(e.style.strokeWidth))")]
    assert max(widths) > 1.5 * min(widths), widths  # 16 KiB beside 256 B


def why_panel(page, m):
    page.click("#view-nodes")
    page.locator("#drawing .edge[aria-label^='exp.1 to reduce_sum.7']").press("Enter")
    why = text(page, "#why")
    d = next(d for d in m["decisions"] if d["value"] == "exp.1" and
             d["reader"] == "reduce_sum.7")
    for part in ("KEPT APART", "RECORDED", d["gate"], d["reason"], d["flip"],
                 m["reasons"][d["reason"]]["line"], "WALL", "16.0 KiB"):
        assert part in why, (part, why)
    page_text = m["reasons"][d["reason"]]["page"]
    sentence = page_text.split("\n\n")[2].split("\n")[0][:40]
    assert sentence in " ".join(why.split()), sentence
    page.locator("#drawing .edge[aria-label^='q.1 to dot']").press("Enter")
    assert "No gate was asked" in text(page, "#why")
    assert "is an input" in text(page, "#why")


def slider(page, m):
    n = len(m["decisions"])
    box = page.locator("#slider")
    box.fill("0")
    assert f"{m['head']['kernels_before']} kernels now" == text(page, "#kernels-now")
    assert "nothing is fused" in text(page, "#step-text")
    assert page.locator("#drawing .ink.fused").count() == 0
    seen, fused = set(), set()
    for k in range(1, n + 1):
        page.keyboard.press("ArrowRight")
        d = m["decisions"][k - 1]
        step = text(page, "#step-text")
        assert step.startswith(f"Step {k} of {n}: {d['value']} → {d['reader']}"), step
        assert ("kept apart" in step) != d["fused"] and d["reason"] in step
        assert f"{d['value']} → {d['reader']}" == text(page, "#why h2")
        assert page.locator("#drawing .ink.fused").count() >= len(fused)
        seen.add(text(page, "#kernels-now"))
        if d["fused"]:
            fused.add((d["from"], d["to"]))
    assert f"{m['head']['kernels_after']} kernels now" in seen and len(seen) > 3
    page.click("#back")
    assert text(page, "#step-text").startswith(f"Step {n - 1} of")
    page.keyboard.press("]")
    assert text(page, "#step-text").startswith(f"Step {n} of")
    page.keyboard.press("[")
    page.keyboard.press("[")
    assert text(page, "#step-text").startswith(f"Step {n - 2} of")
    page.click("#forward")
    page.click("#forward")


def opens(page, m):
    page.click("#view-boxes")
    name = next(b["name"] for b in m["boxes"] if b["count"] > 3 and
                b["opcode"] == "fusion")
    page.locator(f"#drawing .box[aria-label^='{name},']").click()
    assert text(page, "#why h2") == name
    page.click("#open-box")
    assert page.locator("#view-nodes").get_attribute("aria-pressed") == "true"
    assert page.locator("#drawing .node").count() == len(m["nodes"])
    page.click("#to-wall")
    assert "WALL" in text(page, "#why")


def keyboard(page, m):
    """Every part is reached by keys alone."""
    page.click("#view-nodes")
    page.locator("#drawing .node").first.focus()
    at = set()
    for _ in range(6):
        page.keyboard.press("ArrowDown")
        at.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert len(at) == 6 and None not in at
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.locator("#tab-graph").focus()
    order = ["hlo", "memory", "predict", "graph"]
    for t in order:
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == f"tab-{t}"
        assert page.locator(f"#{t}").is_visible()
        assert page.locator("section:visible").count() == 1
    page.keyboard.press("3")
    assert page.locator("#memory").is_visible()
    page.keyboard.press("1")


def search(page, m):
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("reduce_s")
    assert page.locator("#results li").count() >= 1
    assert "found" in text(page, "#status")
    page.keyboard.press("Enter")
    assert text(page, "#why h2") == "reduce_sum.7"
    assert not page.locator("#results").is_visible()
    page.fill("#search", "no such thing")
    assert not page.locator("#results").is_visible()
    assert text(page, "#status") == "0 instructions found"
    page.fill("#search", "")


def hlo(page, m):
    page.click("#tab-hlo")
    line = page.locator("#lines-before [data-v]", has_text="%exp.1 =")
    line.click()
    v = next(k for k, x in enumerate(m["values"]) if x["name"] == "exp.1")
    wanted = [k for k, l in enumerate(m["text"]["after"]) if l.get("value") == v]
    assert wanted
    lit = page.locator("#lines-after .lit")
    assert lit.count() == len(wanted)
    assert lit.first.is_visible() and "exponential" in lit.first.inner_text()
    # and back: a broadcast that stands in two fusions lights one line before
    lit = page.locator("#lines-after [data-v]", has_text="multiply(").first
    lit.click()
    before = page.locator("#lines-before .lit")
    assert before.count() == 1 and "multiply" in before.inner_text()
    assert page.locator("#lines-after .lit").count() == 2
    page.keyboard.press("ArrowDown")
    page.click("#tab-graph")


def memory(page, m):
    page.click("#tab-memory")
    shown = text(page, "#memory")
    assert f"({m['memory']['temp_bytes']} bytes)" in text(page, "#peak")
    for part in ("Traffic", "Planned peak", "Library scratch"):
        assert part in shown, part
    for b in m["boxes"]:
        assert not b.get("runs") or b["name"] in shown
    assert page.locator("#memory svg .life").count() == len(m["memory"]["live"])
    page.click("#tab-graph")


def predict(page, m):
    page.click("#tab-predict")
    answers = page.locator("#predict td[id^=answer]")
    n = answers.count()
    assert n >= 8
    assert set(answers.all_inner_texts()) == {"?"}
    shown = text(page, "#predict")
    for reason in m["reasons"]:
        assert reason not in shown
    page.click("#check")
    assert "Mark at least one" in text(page, "#score")
    truth = {}
    for e in m["edges"]:
        a, b = m["nodes"][e["from"]], m["nodes"][e["to"]]
        if "value" in a and "value" in b:
            key = (m["values"][a["value"]]["name"], m["values"][b["value"]]["name"])
            truth[key] = truth.get(key, False) or e.get("inside", False)
    names = []
    for k in range(n):
        edge = page.locator(f"#row-{k} td").first.inner_text().split()
        key = (edge[0], edge[2])
        names.append(key)
        call = "fused" if truth[key] else "apart"
        page.check(f"input[name=guess-{k}][value={call}]")
    page.click("#check")
    assert text(page, "#score").startswith(f"{n} of {n} as the compiler decided")
    assert page.locator("#predict .right").count() == n
    page.click("#again")
    assert text(page, "#score") == ""
    # In the drawing an edge turns fused, apart, fused; one wrong call counts.
    edge = page.locator("#guess-edge-0")
    edge.press("Enter")
    if truth[names[0]]:
        edge.press("Enter")
    page.click("#check")
    assert text(page, "#score").startswith(f"0 of 1 as the compiler decided; {n - 1}")
    page.click("#predict .rows td button")
    assert page.locator("#graph").is_visible() and text(page, "#why h2")


def names(page, m):
    for tab in ("graph", "hlo", "memory", "predict"):
        page.click(f"#tab-{tab}")
        assert page.evaluate(browser.NAMELESS) == []
        assert page.evaluate(browser.PALE) == []
    page.click("#tab-graph")
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1


ALL = [first_screen, why_panel, slider, opens, keyboard, search, hlo, memory,
       predict, names]


def attention(chrome, lawson, folder):
    path = f"{folder}/attention.html"
    run(lawson, "xray", ATTENTION, "--fusion=xla", "--target=cpu-generic", "-o", path)
    m = model_of(path)
    for check in ALL:
        w = browser.Watched(chrome, path)
        check(w.page, m)
        w.close()
    dark = browser.Watched(chrome, path, dark=True)
    names(dark.page, m)
    dark.close()
    narrow = browser.Watched(chrome, path, width=420)
    assert narrow.page.evaluate(
        "document.documentElement.scrollWidth <= innerWidth + 1")
    narrow.close()


def sources(chrome, lawson, folder):
    path = f"{folder}/sources.html"
    run(lawson, "xray", WITH_SOURCES, "--fusion=xla", "--target=cpu-generic", "-o", path)
    m = model_of(path)
    places = [s for s in m["sources"] if s["file"]]
    assert places
    w = browser.Watched(chrome, path)
    w.page.click("#tab-hlo")
    at = [t for t in w.page.locator("#lines-before .at").all_inner_texts() if t]
    assert len(at) > 5
    w.page.click("#tab-graph")
    line = f"{places[0]['file'].split('/')[-1]}:{places[0]['line']}"
    w.page.fill("#search", line)
    w.page.keyboard.press("Enter")
    assert line in text(w.page, "#why")
    w.close()


def pair(chrome, lawson, folder):
    """What happened is read off two modules; the reasons are our rules'."""
    path = f"{folder}/pair.html"
    base = f"{DATA}/corpus/attn_f32_64x64/classic"
    run(lawson, "xray", f"--before={base}.fusion_in.hlo",
        f"--after={base}.fusion_out.hlo", "--target=cpu-generic", "-o", path)
    m = model_of(path)
    w = browser.Watched(chrome, path)
    assert text(w.page, "#label") == "INFERRED"
    w.page.locator("#slider").fill("1")
    why = text(w.page, "#why")
    assert "INFERRED" in why and "Our rules say the same" in why
    w.page.click("#tab-memory")
    assert "No plan" in text(w.page, "#peak")
    w.close()


HOSTILE = "</script><script>alert(1)</script>\\\"'&<!-- é → 中"


def hostile(chrome, lawson, folder):
    module, path = f"{folder}/hostile.hlo", f"{folder}/hostile.html"
    with open(module, "w", encoding="utf-8") as f:
        f.write("HloModule hostile\n\nENTRY e {\n"
                "  x = f32[64]{0} parameter(0)\n"
                f"  y = f32[64]{{0}} exponential(x), metadata={{op_name=\"{HOSTILE}\" "
                f"source_file=\"{HOSTILE}\" source_line=3}}\n"
                f"  ROOT z = f32[64]{{0}} add(y, x), metadata={{op_name=\"{HOSTILE}\"}}\n"
                "}\n")
    run(lawson, "xray", module, "--fusion=xla", "--target=cpu-generic", "-o", path)
    told = HOSTILE.replace('\\"', '"')
    assert any(s["op_name"] == told for s in model_of(path)["sources"])
    w = browser.Watched(chrome, path)
    w.page.locator("#drawing .edge[aria-label^='y to z']").first.press("Enter")
    assert told in text(w.page, "#why")
    w.page.fill("#search", "<script>alert")
    assert w.page.locator("#results li").count() >= 1
    for tab in ("hlo", "memory", "predict"):
        w.page.click(f"#tab-{tab}")
    assert w.page.locator("script").count() == 2
    w.close()


def gym(chrome, lawson, folder):
    env = dict(os.environ, XDG_DATA_HOME=f"{folder}/none", LAWSON_PYTHON="")
    r = subprocess.run([lawson, "gym", "-o", f"{folder}/gym"], env=env,
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    w = browser.Watched(chrome, f"{folder}/gym/index.html")
    links = w.page.eval_on_selector_all("a", "l => l.map(e => e.getAttribute('href'))")
    assert len(links) >= 7
    if len(links) == 7:
        assert "lawson setup xla-tpu" in text(w.page, "main")
    assert w.page.evaluate(browser.NAMELESS) == []
    w.close()
    for link in links:
        w = browser.Watched(chrome, f"{folder}/gym/{link}")
        assert len(text(w.page, "#lesson")) > 200
        m = model_of(f"{folder}/gym/{link}")
        assert m["lesson_title"] in text(w.page, "#lesson")
        assert w.page.evaluate(browser.NAMELESS) == []
        w.page.click("#tab-predict")
        w.close()


def screenshots(chrome, lawson, folder, out):
    os.makedirs(out, exist_ok=True)
    path = f"{folder}/shot.html"
    run(lawson, "xray", WITH_SOURCES, "--fusion=xla", "--target=cpu-generic", "-o", path)

    def shot(name, act, dark=False):
        w = browser.Watched(chrome, path, width=1120, height=680, dark=dark)
        act(w.page)
        w.page.screenshot(path=f"{out}/{name}.png")
        w.close()
    wall = "#drawing .edge[aria-label^='exp.1 to reduce_sum.7']"
    shot("xray-graph", lambda p: p.locator(wall).press("Enter"))
    shot("xray-slider", lambda p: p.locator("#slider").fill("9"), dark=True)
    shot("xray-hlo", lambda p: (p.click("#tab-hlo"), p.locator(
        "#lines-before [data-v]", has_text="%multiply").first.click(
            position={"x": 30, "y": 8})))
    shot("xray-memory", lambda p: p.click("#tab-memory"))

    def guess(p):
        p.click("#tab-predict")
        for k in range(6):
            p.check(f"input[name=guess-{k}][value=fused]")
        p.click("#check")
    shot("xray-predict", guess)


def main():
    browser.need()
    lawson = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chrome:
        if len(sys.argv) > 3 and sys.argv[2] == "--screenshots":
            screenshots(chrome, lawson, folder, sys.argv[3])
            return
        for check in (attention, sources, pair, hostile, gym):
            check(chrome, lawson, folder)
            print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
