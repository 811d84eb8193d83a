/* The drawings, the slider over the queue, and what is chosen. */

/* ---- the graph ---- */

let parts = { edges: [], boxes: [], nodes: [], frames: [] };

function drawGraph(panel) {
  const open = !!M.layout.nodes;
  fill(panel, {}, [
    h("div", { id: "canvas" },
      h("div", { class: "tools", role: "toolbar", "aria-label": "Drawing" },
        h("button", { id: "view-boxes", "aria-pressed": "true",
          on: { click: () => setView("boxes") } }, "Kernels"),
        h("button", { id: "view-nodes", "aria-pressed": "false",
          disabled: !open, title: open ? "" :
            "too many instructions to draw; choose a kernel to list its own",
          on: { click: () => setView("nodes") } }, "Opened"),
        h("button", { "aria-label": "Smaller",
          on: { click: () => zoomBy(1 / 1.25) } }, "−"),
        h("button", { "aria-label": "Larger",
          on: { click: () => zoomBy(1.25) } }, "+"),
        h("button", { on: { click: () => { S.zoom = 0; applyZoom(); } } },
          "Fit"),
        h("span", { class: "quiet", id: "legend" })),
      h("div", { class: "drawing", id: "drawing" })),
    h("aside", { id: "why", "aria-label": "Why", tabindex: "0" }),
    h("div", { id: "queue", role: "group",
      "aria-label": "The queue of decisions" }, queueParts()),
  ]);
  setView(open && M.nodes.length <= 60 ? "nodes" : "boxes");
  whyStart();
  showStep();
}

function queueParts() {
  const width = Math.max(STEPS, 1);
  return [
    h("div", { class: "bar" },
      h("button", { "aria-label": "Step back", id: "back",
        on: { click: () => setStep(S.step - 1) } }, "◀"),
      h("input", { type: "range", id: "slider", min: 0, max: STEPS,
        value: STEPS, step: 1, "aria-label": "Step of the queue",
        on: { input: (ev) => setStep(+ev.target.value) } }),
      h("button", { "aria-label": "Step forward", id: "forward",
        on: { click: () => setStep(S.step + 1) } }, "▶"),
      h("span", { id: "kernels-now" })),
    s("svg", { class: "ticks", viewBox: `0 0 ${width} 1`,
      preserveAspectRatio: "none", "aria-hidden": "true" },
      M.decisions.map((d, k) => s("rect", { x: k, y: d.fused ? 0 : 0.6,
        width: 0.9, height: d.fused ? 1 : 0.4,
        fill: d.fused ? "var(--fused)" : "var(--apart)" }))),
    h("output", { id: "step-text", for: "slider" }),
    M.label === "INFERRED" && h("p", { class: "quiet", style: "margin:0" },
      "The compiler kept no record of its order: edges stand in the " +
      "program's."),
  ];
}

function setView(v) {
  if (!M.layout[v]) return;
  S.view = v;
  for (const t of ["boxes", "nodes"])
    $(`view-${t}`).setAttribute("aria-pressed", String(t === v));
  $("legend").textContent = v === "boxes"
    ? "data flows down; a box is a kernel; an edge is as thick as its bytes"
    : "green: inside a kernel; dark: in memory, as thick as its bytes";
  const svg = v === "boxes" ? svgBoxes() : svgNodes();
  svg.addEventListener("keydown", walk);
  $("drawing").replaceChildren(svg);
  S.zoom = 0;
  applyZoom();
  showStep();
  showChosen();
}

function applyZoom() {
  const svg = $("drawing").firstChild;
  if (!svg) return;
  const w = +svg.dataset.w, hgt = +svg.dataset.h;
  const box = $("drawing");
  const fit = Math.max(0.25, Math.min(1.15, (box.clientWidth - 6) / w,
    Math.max(0.55, (box.clientHeight - 6) / hgt)));
  const z = S.zoom || fit;
  svg.setAttribute("width", w * z);
  svg.setAttribute("height", hgt * z);
}
function zoomBy(f) {
  const svg = $("drawing").firstChild;
  S.zoom = Math.min(4, Math.max(0.1, svg.getAttribute("width") /
    svg.dataset.w * f));
  applyZoom();
}

const path = (c) => {
  let d = `M${c[2]} ${c[3]}C`;
  for (let k = 4; k < c.length; k++) d += ` ${c[k]}`;
  return d;
};

function svgRoot(l, title) {
  return s("svg", { viewBox: `-10 -10 ${l.width + 20} ${l.height + 20}`,
    "data-w": l.width + 20, "data-h": l.height + 20, role: "group",
    "aria-label": title });
}

function press(action) {
  return { click: action, keydown: (ev) => {
    if (ev.key === "Enter" || ev.key === " ") { ev.preventDefault(); action(); }
  } };
}

/* Arrow keys walk through what can be chosen. */
function walk(ev) {
  const d = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[ev.key];
  if (!d) return;
  const all = [...ev.currentTarget.querySelectorAll("[tabindex]")];
  const at = all.indexOf(document.activeElement);
  if (at < 0) return;
  ev.preventDefault();
  ev.stopPropagation();
  const to = all[(at + d + all.length) % all.length];
  all[at].setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
  to.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function edgePart(c, cls, width, label, action) {
  const ink = s("path", { class: `ink ${cls}`, d: path(c),
    "stroke-width": width });
  ink.style.strokeWidth = `${width}px`;
  return s("g", { class: "edge", role: "button", tabindex: "-1",
    "aria-label": label, on: press(action) },
    s("path", { class: "hit", d: path(c) }), ink, s("title", {}, label));
}

function labels(p, name, second) {
  return second
    ? [s("text", { x: p[0], y: p[1] - 2 }, short(name, p[2])),
       s("text", { x: p[0], y: p[1] + 11, class: "quiet" },
         short(second, p[2]))]
    : [s("text", { x: p[0], y: p[1] + 4 }, short(name, p[2]))];
}
const rect = (p, attrs) => s("rect", { x: p[0] - p[2] / 2, y: p[1] - p[3] / 2,
  width: p[2], height: p[3], rx: 5, ...attrs });

/* What flows between two boxes: [edges, bytes of distinct values]. */
function flows() {
  const all = new Map();
  M.edges.forEach((e, k) => {
    if (e.inside) return;
    const key = `${M.nodes[e.from].box},${M.nodes[e.to].box}`;
    if (!all.has(key)) all.set(key, { edges: [], seen: new Set(), bytes: 0 });
    const f = all.get(key);
    f.edges.push(k);
    if (!f.seen.has(e.from)) { f.seen.add(e.from); f.bytes += e.bytes; }
  });
  return all;
}

function frameOf(l, list, margin) {
  let a = 1e9, b = 1e9, c = -1e9, d = -1e9;
  for (const k of list) {
    const p = l.places[k];
    if (!p || !p.length) continue;
    a = Math.min(a, p[0] - p[2] / 2); b = Math.min(b, p[1] - p[3] / 2);
    c = Math.max(c, p[0] + p[2] / 2); d = Math.max(d, p[1] + p[3] / 2);
  }
  return { x: a - margin, y: b - margin, width: c - a + 2 * margin,
           height: d - b + 2 * margin, rx: 8 };
}

function svgBoxes() {
  const l = M.layout.boxes, all = flows();
  const svg = svgRoot(l, `${M.module} after fusion: ` +
    `${M.head.kernels_after} kernels`);
  parts = { edges: [], boxes: [], nodes: [], frames: [] };
  if (M.computations.length > 1)
    M.computations.forEach((name, c) => {
      const list = M.boxes.map((b, k) => k).filter(
        (k) => M.boxes[k].computation === c);
      const f = frameOf(l, list, 10);
      svg.append(s("rect", { class: "frame comp", ...f }),
        s("text", { x: f.x + f.width / 2, y: f.y - 2, class: "quiet" },
          short(name, f.width)));
    });
  for (const c of l.curves) {
    const f = all.get(`${c[0]},${c[1]}`);
    if (!f) continue;
    const wall = f.edges.some((k) => isWallEdge(M.edges[k]));
    const memory = M.boxes[c[0]].runs && M.boxes[c[1]].runs;
    const part = edgePart(c, wall ? "wall" : memory ? "memory" : "",
      memory || wall ? thickness(f.bytes) : 1,
      `${M.boxes[c[0]].name} to ${M.boxes[c[1]].name}, ${bytes(f.bytes)}` +
      (wall ? ", the wall" : ""), () => chooseFlow(f.edges));
    parts.edges.push({ part, edges: f.edges });
    svg.append(part);
  }
  M.boxes.forEach((b, k) => {
    const p = l.places[k];
    if (!p.length) return;
    const cls = !b.runs ? "none" : isFusion(k) ? "" : "op";
    const g = s("g", { class: `box ${cls} ${b.wall != null ? "wall" : ""}`,
      role: "button", tabindex: parts.boxes.length ? "-1" : "0",
      "aria-label": `${b.name}, ${b.opcode} of ` +
        `${plural(b.count, "instruction")}, ${b.shape}`,
      on: { ...press(() => chooseBox(k)), dblclick: () => openBox(k) } },
      rect(p, {}), labels(p, b.name, b.runs ? b.shape : ""),
      s("title", {}, `${b.name} ${b.shape}`));
    parts.boxes.push({ part: g, box: k });
    svg.append(g);
  });
  return svg;
}

function svgNodes() {
  const l = M.layout.nodes;
  const svg = svgRoot(l, `${M.module} after fusion, kernels opened`);
  parts = { edges: [], boxes: [], nodes: [], frames: [] };
  M.boxes.forEach((b, k) => {
    if (!isFusion(k)) return;
    const f = frameOf(l, nodesOf(k), 9);
    const frame = s("rect", { class: "frame", ...f });
    parts.frames.push({ part: frame, box: k });
    svg.append(frame);
  });
  const at = new Map(M.edges.map((e, k) => [`${e.from},${e.to}`, k]));
  for (const c of l.curves) {
    const k = at.get(`${c[0]},${c[1]}`);
    if (k == null) continue;
    const part = edgePart(c, "", 1, edgeLabel(k), () => chooseEdge(k));
    parts.edges.push({ part, edges: [k] });
    svg.append(part);
  }
  M.nodes.forEach((n, k) => {
    const p = l.places[k];
    if (!p.length) return;
    const g = s("g", { class: "node", role: "button",
      tabindex: parts.nodes.length ? "-1" : "0",
      "aria-label": `${n.name}, ${n.opcode}, ${n.shape}`,
      on: press(() => chooseNode(k)) },
      rect(p, {}), labels(p, n.name, n.shape),
      s("title", {}, `${n.name} ${n.opcode} ${n.shape}`));
    parts.nodes.push({ part: g, node: k });
    svg.append(g);
  });
  return svg;
}

function edgeLabel(k) {
  const e = M.edges[k], a = M.nodes[e.from], b = M.nodes[e.to];
  return `${a.name} to ${b.name}, ${bytes(e.bytes)}, ` +
    (e.inside ? "inside one kernel" : isWallEdge(e) ? "the wall"
      : "between kernels");
}

/* ---- the slider ---- */

function setStep(k) {
  S.step = Math.max(0, Math.min(STEPS, k));
  $("slider").value = S.step;
  if (S.view === "boxes" && M.layout.nodes && S.step < STEPS) setView("nodes");
  else showStep();
  if (S.step > 0) chooseDecision(S.step - 1);
}

function stepText(k) {
  if (k === 0) return STEPS ? "Before the first decision: nothing is fused."
    : "No gate was asked anything.";
  const d = M.decisions[k - 1];
  const numbers = d.saved_us != null
    ? `; saves ${us(d.saved_us)}` + (d.unfused_us == null ? ""
        : ` (${us(d.unfused_us)} → ${us(d.fused_us)})`) : "";
  return `Step ${k} of ${STEPS}: ${d.value} → ${d.reader || "all its readers"}: ` +
    (d.fused ? "fused" : "kept apart") + (d.reason ? `, ${d.reason}` : "") +
    numbers + `; ${bytes(d.bytes)}`;
}

function showStep() {
  if (!$("slider")) return;
  const state = stateAt(S.step);
  const text = stepText(S.step);
  $("step-text").textContent = text;
  $("slider").setAttribute("aria-valuetext", text);
  $("kernels-now").textContent = `${plural(state.kernels, "kernel")} now`;
  for (const p of parts.nodes) {
    const n = M.nodes[p.node], cl = p.part.classList;
    cl.toggle("joined", state.size.get(state.group[p.node]) > 1);
    cl.toggle("later", state.later[p.node]);
    cl.toggle("none", !n.runs);
    cl.toggle("wall", n.wall != null && S.step >= STEPS);
  }
  for (const p of parts.frames) {
    const list = nodesOf(p.box);
    p.part.classList.toggle("whole", new Set(list.map(
      (k) => state.group[k])).size === 1);
  }
  if (S.view === "nodes") for (const p of parts.edges) inkEdge(p, state);
}

function inkEdge(p, state) {
  const e = M.edges[p.edges[0]], ink = p.part.querySelector(".ink");
  const joined = e.inside && state.group[e.from] === state.group[e.to];
  const wall = isWallEdge(e);
  const memory = !joined && M.nodes[e.from].runs && M.nodes[e.to].runs;
  ink.setAttribute("class", "ink " + (joined ? "fused" : wall ? "wall"
    : memory ? (e.inside ? "memory waiting" : "memory") : ""));
  ink.style.strokeWidth = `${memory || wall ? thickness(e.bytes) : 1.4}px`;
}

/* ---- choosing ---- */

function showChosen() {
  const c = S.chosen || {};
  for (const p of parts.edges)
    p.part.classList.toggle("chosen", !!c.edges &&
      p.edges.some((k) => c.edges.includes(k)));
  for (const p of parts.boxes)
    p.part.classList.toggle("chosen", c.box === p.box);
  for (const p of parts.nodes)
    p.part.classList.toggle("chosen", c.node === p.node);
}

function reveal() {
  const p = document.querySelector("#drawing .chosen");
  if (p) p.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function choose(c) { S.chosen = c; showChosen(); reveal(); }

function chooseEdge(k) {
  choose({ edges: [k] });
  const e = M.edges[k];
  if (e.decision != null) whyDecision(M.decisions[e.decision], e);
  else whyUnasked(e);
}

function chooseFlow(edges) {
  if (edges.length === 1) { chooseEdge(edges[0]); return; }
  choose({ edges });
  const e = M.edges[edges[0]];
  const name = (k) => M.boxes[M.nodes[k].box].name;
  why(h("h2", {}, `${name(e.from)} → ${name(e.to)}`),
    h("p", {}, "Several edges between these two; choose one:"),
    edges.map(edgeRow));
}

const edgeRow = (k) => h("button", { class: "row",
  on: { click: () => chooseEdge(k) } }, edgeLabel(k));

function chooseDecision(k) {
  const d = M.decisions[k];
  const at = M.edges.findIndex((e) => e.decision === k);
  const same = at >= 0 ? at : M.edges.findIndex((e) =>
    M.nodes[e.from].value === d.from && M.nodes[e.to].value === d.to);
  choose(same >= 0 ? { edges: [same] } :
    { node: (byValue.get(d.from) || [-1])[0] });
  whyDecision(d, same >= 0 ? M.edges[same] : null);
}

function openBox(k) {
  if (isFusion(k) && M.layout.nodes) setView("nodes");
  chooseBox(k);
  const first = parts.nodes.find((p) => M.nodes[p.node].box === k);
  if (first) first.part.scrollIntoView({ block: "center", inline: "center" });
}

function chooseBox(k) {
  choose({ box: k });
  const b = M.boxes[k];
  const out = M.edges.map((e, i) => i).filter((i) => !M.edges[i].inside &&
    (M.nodes[M.edges[i].from].box === k || M.nodes[M.edges[i].to].box === k));
  why(h("h2", {}, b.name),
    h("dl", { class: "numbers" }, pair("what", b.opcode),
      pair("result", b.shape),
      b.runs && pair("reads", bytes(b.read)),
      b.runs && pair("writes", bytes(b.written)),
      pair("instructions", String(b.count))),
    b.wall != null && wallText(M.walls[b.wall]),
    isFusion(k) && M.layout.nodes && S.view === "boxes" &&
      h("button", { id: "open-box", on: { click: () => openBox(k) } },
        "Open its computation"),
    isFusion(k) && h("details", { open: !M.layout.nodes },
      h("summary", {}, "Its computation"),
      h("pre", { class: "page", tabindex: "0" }, M.text.after.filter((l) =>
        l.box === k).map((l) => l.text.trim()).join("\n"))),
    h("h3", {}, "Edges"), out.slice(0, 40).map(edgeRow));
}

function chooseNode(k) {
  const n = M.nodes[k];
  choose(S.view === "nodes" ? { node: k } : { box: n.box });
  const around = M.edges.map((e, i) => i).filter((i) =>
    M.edges[i].from === k || M.edges[i].to === k);
  const v = n.value != null ? M.values[n.value] : null;
  const src = v && v.source != null ? M.sources[v.source] : null;
  why(h("h2", {}, n.name),
    h("dl", { class: "numbers" }, pair("what", n.opcode),
      pair("shape", `${n.shape}, ${bytes(n.bytes)}`),
      pair("kernel", M.boxes[n.box].name),
      src && pair("source", `${src.op_name} ${where(src)}`)),
    n.left != null && leftText(M.left[n.left]),
    n.wall != null && wallText(M.walls[n.wall]),
    n.value != null && h("button", { on: { click: () => {
      showTab("hlo"); lightValue(n.value, true); } } }, "Show in the HLO"),
    h("h3", {}, "Edges"), around.slice(0, 40).map(edgeRow));
}
