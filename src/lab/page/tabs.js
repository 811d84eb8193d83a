/* The other tabs: HLO, memory, predict; keys, and the start of it all. */

/* ---- HLO ---- */

const linesOf = { before: new Map(), after: new Map() };

function drawHlo(panel) {
  const side = (key, title) => h("div", { class: "side" }, h("h2", {}, title),
    h("div", { class: "lines", id: `lines-${key}`, role: "group",
      "aria-label": title, on: { click: lineClick, keydown: lineKey,
        mouseover: lineHover } }, chunks(key)));
  fill(panel, {}, [
    h("p", { class: "quiet", style: "margin:0 0 6px" }, "A line lights the " +
      "lines of the same value on the other side; its source stands before it."),
    h("div", { class: "sides" }, side("before", "Before fusing"),
      side("after", "After")),
  ]);
  for (const key in linesOf) {
    const first = $(`lines-${key}`).querySelector("[tabindex]");
    if (first) first.tabIndex = 0;
  }
}

/* Hundreds of lines at a time, so that those out of sight cost no layout. */
function chunks(key) {
  const all = [], lines = M.text[key];
  for (let k = 0; k < lines.length; k += 100) {
    const part = lines.slice(k, k + 100);
    all.push(h("div", { class: "chunk", style: "contain-intrinsic-size: auto " +
      `900px auto ${18 * part.length}px` }, part.map((l) => hloLine(key, l))));
  }
  return all;
}

const HAS_SOURCES = M.sources.some((x) => x.file);

function hloLine(key, l) {
  const v = l.value != null ? M.values[l.value] : null;
  const src = v && v.source != null ? M.sources[v.source] : null;
  const line = h("div", l.value != null ? { class: "line", tabindex: "-1",
    "data-v": l.value } : { class: "line" },
    HAS_SOURCES && h("span", { class: "at", title: src ? src.op_name : null },
      where(src)), l.text || " ");
  if (l.value != null) {
    if (!linesOf[key].has(l.value)) linesOf[key].set(l.value, []);
    linesOf[key].get(l.value).push(line);
  }
  return line;
}

let lit = [];
function lightValue(v, scroll, from) {
  lit.forEach((l) => l.classList.remove("lit"));
  lit = [];
  for (const key in linesOf) {
    const list = linesOf[key].get(v) || [];
    list.forEach((l) => { l.classList.add("lit"); lit.push(l); });
    if (scroll && list.length && key !== from)
      list[0].scrollIntoView({ block: "center", inline: "nearest" });
  }
}

const lineOf = (ev) => ev.target.closest("[data-v]");
function lineHover(ev) {
  const l = lineOf(ev);
  if (l) lightValue(+l.dataset.v, false);
}
function lineClick(ev) {
  const l = lineOf(ev);
  if (!l) return;
  lightValue(+l.dataset.v, true, ev.currentTarget.id.slice(6));
  say(`${M.values[+l.dataset.v].name}: ${plural(lit.length, "line")}`);
}
function lineKey(ev) {
  const l = lineOf(ev);
  if (!l) return;
  const d = { ArrowDown: 1, ArrowUp: -1 }[ev.key];
  if (ev.key === "Enter") { lineClick(ev); return; }
  if (!d) return;
  ev.preventDefault();
  const all = [...ev.currentTarget.querySelectorAll("[data-v]")];
  const to = all[Math.max(0, Math.min(all.length - 1, all.indexOf(l) + d))];
  l.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
  lightValue(+to.dataset.v, true, ev.currentTarget.id.slice(6));
}

/* ---- memory ---- */

function drawMemory(panel) {
  const m = M.memory, d = M.head;
  const run = M.boxes.filter((b) => b.runs);
  const most = Math.max(1, ...run.map((b) => b.read + b.written));
  fill(panel, {}, [
    table("Traffic of the whole", ["", "before fusing", "after"], [
      ["kernels", d.kernels_before, d.kernels_after],
      ["instructions", d.instructions_before, d.instructions_after],
      ["bytes between kernels", bytes(d.bytes_before), bytes(d.bytes_after)],
    ]),
    h("p", {}, `Kept inside kernels: ${bytes(d.kept_bytes)}` +
      (d.off_dram_bytes == null ? "." : "; of them too large for this " +
        `target's caches: ${bytes(d.off_dram_bytes)}.`)),
    table("Traffic of each kernel", ["kernel", "reads", "writes", ""],
      run.slice().sort((a, b) => b.read + b.written - a.read - a.written)
        .slice(0, 200).map((b) => [b.name, bytes(b.read), bytes(b.written),
          h("span", { class: "meter", style:
            `width:${Math.round(160 * (b.read + b.written) / most)}px` })])),
    h("h2", {}, "Planned memory"),
    m.temp_bytes != null
      ? [h("p", { id: "peak" }, `Planned peak of intermediates: ` +
          `${bytes(m.temp_bytes)} (${m.temp_bytes} bytes).`), liveChart(m.live)]
      : h("p", { id: "peak" }, `No plan: ${m.no_plan}.`),
    h("h2", {}, "Library scratch"),
    m.scratch.length ? table("Beyond the values", ["who", "what", "bytes"],
      m.scratch.map((x) => [x.name, x.what, bytes(x.bytes)]))
      : h("p", {}, "None: no library call or kernel asks for memory beyond " +
          "its values."),
  ]);
}

function table(caption, head, rows) {
  return h("table", {}, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, head.map((t, k) => h("th", { scope: "col",
      class: k ? "number" : null }, t)))),
    h("tbody", {}, rows.map((r) => h("tr", {}, r.map((c, k) => k
      ? h("td", { class: typeof c === "object" ? null : "number" }, c)
      : h("th", { scope: "row", class: "mono" }, c))))));
}

function liveChart(all) {
  const list = all.slice().sort((a, b) => b.bytes - a.bytes).slice(0, 120)
    .sort((a, b) => a.first - b.first || a.last - b.last);
  const last = Math.max(1, ...all.map((l) => l.last));
  const w = 760, row = 17, x0 = 250;
  const svg = s("svg", { width: x0 + w + 150, height: row * list.length + 24,
    role: "img", "aria-label": `Live ranges of ${list.length} values over ` +
      `${last} steps; the table below has the numbers` });
  list.forEach((l, k) => {
    const x = x0 + w * l.first / last;
    svg.append(s("text", { x: 4, y: row * k + 15 }, short(l.name, 236)),
      s("rect", { class: `life ${l.kind}`, x, y: row * k + 4, height: row - 4,
        width: Math.max(3, w * (l.last - l.first) / last), rx: 2 },
        s("title", {}, `${l.name}: ${l.kind}, ${bytes(l.bytes)}, steps ` +
          `${l.first} to ${l.last}`)),
      s("text", { x: x0 + w + 8, y: row * k + 15, class: "quiet" },
        `${bytes(l.bytes)} ${l.kind}`));
  });
  return [h("div", { style: "overflow-x:auto", tabindex: "0",
    role: "region", "aria-label": "Live ranges" }, svg),
    h("details", {}, h("summary", {}, "As a table"),
      table("Live ranges", ["value", "kind", "bytes", "offset", "first",
        "last"], list.map((l) => [l.name, l.kind, l.bytes,
        l.offset != null ? l.offset : "–", l.first, l.last])))];
}

/* ---- predict ---- */

let asked = [];

/* One row an edge of the program, at most 24: the largest values, in the
 * program's order. The truth is what became of it: in one kernel or not. */
function questions() {
  const all = new Map();
  M.edges.forEach((e) => {
    const a = M.nodes[e.from], b = M.nodes[e.to];
    if (a.value == null || b.value == null || e.decision == null ||
        !a.runs || !b.runs) return;
    const key = `${a.value},${b.value}`;
    const had = all.get(key);
    if (had && (had.fused || !e.inside)) return;
    all.set(key, { from: a.value, to: b.value, fused: !!e.inside,
      bytes: e.bytes, decision: e.decision, guess: null });
  });
  return [...all.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 24)
    .sort((a, b) => a.from - b.from || a.to - b.to);
}

function drawPredict(panel) {
  asked = questions();
  const compiler = M.compiler === "lawson" ? "Lawson" : M.compiler;
  fill(panel, {}, [
    h("p", { style: "margin:0" }, `Which of these edges did ${compiler} fuse ` +
      `for ${M.target}? Mark each one, then compare. In the drawing, an edge ` +
      "turns from open to fused to kept apart."),
    h("p", { style: "margin:4px 0" },
      h("button", { id: "check", on: { click: score } }, "Compare"), " ",
      h("button", { id: "again", on: { click: () => {
        panel.replaceChildren(); drawPredict(panel); } } }, "Start over"), " ",
      h("output", { id: "score" })),
    h("div", { class: "two" },
      h("div", { class: "drawing", id: "guessing" }, guessDrawing()),
      h("div", { class: "rows" }, asked.length
        ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "edge"),
            h("th", {}, "your call"), h("th", {}, "the compiler's"))),
          h("tbody", {}, asked.map(guessRow)))
        : h("p", {}, "There is no edge to ask about."))),
  ]);
}

const named = (q) => [M.values[q.from].name, M.values[q.to].name];

function guessRow(q, k) {
  const v = M.values[q.from], [from, to] = named(q);
  const radio = (value, text) => h("label", {}, h("input", { type: "radio",
    name: `guess-${k}`, value, "aria-label": `${from} to ${to}: ${text}`,
    on: { change: () => setGuess(k, value) } }), ` ${text} `);
  return h("tr", { id: `row-${k}` },
    h("td", { class: "mono" }, `${from} → ${to} `,
      h("span", { class: "quiet" }, `${v.opcode} ${v.shape}`)),
    h("td", { class: "calls" }, radio("fused", "fused"),
      radio("apart", "apart")),
    h("td", { id: `answer-${k}` }, "?"));
}

function setGuess(k, value) {
  asked[k].guess = value;
  const radio = document.querySelector(`input[name=guess-${k}][value=${value}]`);
  if (radio) radio.checked = true;
  const g = $(`guess-edge-${k}`);
  if (!g) return;
  g.classList.toggle("fused-guess", value === "fused");
  g.classList.toggle("apart-guess", value === "apart");
}

function guessDrawing() {
  const l = M.layout.values;
  if (!l) return h("p", {}, "Too many instructions to draw before fusing.");
  const svg = svgRoot(l, "The program before fusing");
  svg.setAttribute("width", l.width + 20);
  svg.setAttribute("height", l.height + 20);
  const at = new Map(asked.map((q, k) =>
    [`${q.from},${q.to}`, k]));
  for (const c of l.curves) {
    const k = at.get(`${c[0]},${c[1]}`);
    if (k == null) {
      svg.append(s("g", { class: "edge" }, s("path", { class: "ink",
        d: path(c) })));
      continue;
    }
    const [from, to] = named(asked[k]);
    const part = edgePart(c, "memory", thickness(asked[k].bytes),
      `${from} to ${to}, ${bytes(asked[k].bytes)}: your call`, () =>
        setGuess(k, asked[k].guess === "fused" ? "apart" : "fused"));
    part.id = `guess-edge-${k}`;
    svg.append(part);
  }
  M.values.forEach((v, k) => {
    const p = l.places[k];
    if (p.length) svg.append(s("g", { class: "node" }, rect(p, {}),
      labels(p, v.name, v.shape)));
  });
  svg.addEventListener("keydown", walk);
  const first = svg.querySelector("[tabindex]");
  if (first) first.setAttribute("tabindex", "0");
  return svg;
}

function score() {
  let right = 0, marked = 0, fused = 0;
  asked.forEach((q, k) => {
    const d = M.decisions[q.decision], truth = q.fused ? "fused" : "apart";
    const [from, to] = named(q);
    fused += q.fused;
    if (!q.guess) return;
    marked++;
    const ok = q.guess === truth;
    right += ok;
    $(`answer-${k}`).replaceChildren(
      h("span", { class: ok ? "right" : "wrong" },
        `${ok ? "✓" : "✗"} ${q.fused ? "fused" : "kept apart"}`), " ",
      h("span", { class: "quiet" }, d.fused === q.fused && d.reason || ""),
      " ", h("button", { "aria-label": `Why ${from} to ${to}`,
        on: { click: () => { showTab("graph"); chooseDecision(q.decision); } } },
        "why"));
  });
  $("score").textContent = marked
    ? `${right} of ${marked} as the compiler decided` +
      (marked < asked.length ? `; ${asked.length - marked} not marked` : "") +
      `. Saying the same of every edge gets ` +
      `${Math.max(fused, asked.length - fused)} of ${asked.length}.`
    : "Mark at least one edge first.";
}

/* ---- keys, start ---- */

document.addEventListener("keydown", (ev) => {
  const typing = ev.target.matches("input:not([type=range]):not([type=radio])");
  if (typing || ev.ctrlKey || ev.metaKey || ev.altKey) return;
  const tab = Object.keys(TABS)[+ev.key - 1];
  if (ev.key === "/") { ev.preventDefault(); $("search").focus(); }
  else if (tab) { showTab(tab); $(`tab-${tab}`).focus(); }
  else if (S.tab === "graph" && ev.key === "[") setStep(S.step - 1);
  else if (S.tab === "graph" && ev.key === "]") setStep(S.step + 1);
});
window.addEventListener("resize", () => { if (S.tab === "graph") applyZoom(); });

drawHead();
drawTabs();
showTab("graph");
