/* The x-ray page. It reads the model (docs/xray.md) and draws; it decides
 * nothing and asks nothing of the network. Text only ever goes into the page as
 * text nodes. embed.cmake puts base, graph, why and tabs into one function, in
 * this order.
 */
const M = JSON.parse(document.getElementById("model").textContent);
const STEPS = M.decisions.length;
const S = { tab: "graph", view: "boxes", step: STEPS, zoom: 0, chosen: null };

/* ---- small tools ---- */

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function fill(e, attrs, kids) {
  for (const k in attrs || {}) {
    if (k === "on") for (const n in attrs.on) e.addEventListener(n, attrs.on[n]);
    else if (attrs[k] === true) e.setAttribute(k, "");
    else if (attrs[k] !== false && attrs[k] != null) e.setAttribute(k, attrs[k]);
  }
  for (const kid of kids.flat(9)) if (kid != null && kid !== false) e.append(kid);
  return e;
}
const h = (tag, attrs, ...kids) => fill(document.createElement(tag), attrs, kids);
const s = (tag, attrs, ...kids) =>
  fill(document.createElementNS(SVG, tag), attrs, kids);

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  const sign = n < 0 ? "-" : "";
  n = Math.abs(n);
  while (n >= 1024 && k < 4) { n /= 1024; k++; }
  return `${sign}${k && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[k]}`;
}
const us = (n) => `${n.toFixed(3)} µs`;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const short = (t, w) => {
  const n = Math.max(3, Math.floor((w - 12) / 6.7));
  return t.length > n ? t.slice(0, n - 1) + "…" : t;
};
/* 1 px to 9 px, by the logarithm between 64 B and 64 MB; xray_page.c has the
 * same rule. */
function thickness(n) {
  let w = 1;
  for (let v = 64; v < n && w < 9; v *= 4) w += 0.8;
  return w;
}
const say = (text) => { $("status").textContent = text; };
const where = (src) =>
  src && src.file ? `${src.file.split("/").pop()}:${src.line}` : "";

/* ---- what the model says, indexed ---- */

const nodesOf = (b) =>
  Array.from({ length: M.boxes[b].count }, (_, k) => M.boxes[b].first + k);
const byValue = new Map(); /* value -> nodes */
M.nodes.forEach((n, k) => {
  if (n.value == null) return;
  if (!byValue.has(n.value)) byValue.set(n.value, []);
  byValue.get(n.value).push(k);
});
const wallOf = (node) =>
  M.nodes[node].wall != null ? M.walls[M.nodes[node].wall] : null;
const isWallEdge = (e) => {
  const w = wallOf(e.from);
  return !e.inside && w && w.in_memory;
};
const isFusion = (b) => M.boxes[b].opcode === "fusion";

/* Which nodes each fused decision joins: both ends in one box. */
const joins = M.decisions.map((d) => {
  const list = [];
  if (!d.fused || d.from == null || d.to == null) return list;
  for (const a of byValue.get(d.from) || [])
    for (const b of byValue.get(d.to) || [])
      if (M.nodes[a].box === M.nodes[b].box) list.push([a, b]);
  return list;
});

/* The kernels as they are after that many steps. */
function stateAt(step) {
  const up = M.nodes.map((_, k) => k);
  const find = (k) => { while (up[k] !== k) k = up[k] = up[up[k]]; return k; };
  const join = (a, b) => { up[find(a)] = find(b); };
  for (let k = 0; k < step; k++) for (const [a, b] of joins[k]) join(a, b);
  M.boxes.forEach((b) => {
    if (step >= STEPS || b.given)
      for (let k = 1; k < b.count; k++) join(b.first, b.first + k);
  });
  const size = new Map(), runs = new Set();
  M.nodes.forEach((n, k) => size.set(find(k), (size.get(find(k)) || 0) + 1));
  const later = M.nodes.map((n, k) => !!n.copy && size.get(find(k)) === 1 &&
    M.boxes[n.box].count > 1);
  M.nodes.forEach((n, k) => { if (n.runs && !later[k]) runs.add(find(k)); });
  return { group: M.nodes.map((_, k) => find(k)), size, later,
           kernels: step >= STEPS ? M.head.kernels_after : runs.size };
}

/* ---- the head ---- */

function fact(label, value, title) {
  return h("span", { class: "fact", title }, h("span", { class: "quiet" },
    label + " "), h("b", {}, value));
}

function drawHead() {
  const d = M.head;
  const inferred = M.label === "INFERRED";
  fill($("head"), {}, [
    h("h1", {}, M.module),
    fact("compiler", `${M.compiler}, ${M.strategy}`),
    fact("target", M.target),
    fact("kernels", `${d.kernels_before} → ${d.kernels_after}`),
    fact("kept off DRAM", bytes(d.kept_bytes),
      "values that stay inside kernels" + (d.off_dram_bytes == null ? "" :
        `; ${bytes(d.off_dram_bytes)} of them are too large for this ` +
        "target's caches")),
    fact("between kernels", `${bytes(d.bytes_before)} → ${bytes(d.bytes_after)}`),
    d.walls
      ? h("button", { class: "badge wall", id: "to-wall",
          on: { click: showWall } }, plural(d.walls, "wall") + wallsCrossing())
      : fact("walls", "none"),
    h("span", { class: "badge", id: "label", title: inferred
      ? "read off the modules before and after; reasons are our rules'"
      : "from the compiler's own decision records" }, M.label),
    h("span", { class: "search" },
      h("input", { type: "search", id: "search", role: "combobox",
        "aria-label": "Search instructions, operations and source lines",
        "aria-controls": "results", "aria-expanded": "false",
        "aria-autocomplete": "list",
        placeholder: "Search ( / )", autocomplete: "off",
        on: { input: search, keydown: searchKey, blur: () =>
          setTimeout(closeResults, 150) } }),
      h("ul", { id: "results", role: "listbox", hidden: true,
        "aria-label": "Found" })),
  ]);
  if (!M.lesson) return;
  const parts = M.lesson.split(/\n\s*\n/).filter((p) => p.trim());
  $("tabs").before(h("aside", { id: "lesson", "aria-label": "Lesson",
    tabindex: "0" }, h("h2", {}, M.lesson_title || ""),
    parts.map((p) => h("p", {}, p))));
}

function wallsCrossing() {
  const n = M.walls.filter((w) => w.crosses !== "nothing").length;
  return n ? `, ${n} between kernels` : ", inside kernels";
}

function showWall() {
  showTab("graph");
  const at = M.nodes.findIndex((n) => n.wall != null);
  if (at >= 0) chooseNode(at);
  else whyWalls();
}

/* ---- search ---- */

let found = [], foundAt = -1;

function search() {
  const q = $("search").value.trim().toLowerCase();
  found = [];
  if (q) {
    M.values.forEach((v, k) => {
      const src = v.source != null ? M.sources[v.source] : null;
      const text = [v.name, v.opcode, v.shape, src ? src.op_name : "",
        where(src)].join(" ").toLowerCase();
      if (text.includes(q)) found.push(k);
    });
    found.sort((a, b) =>
      M.values[b].name.toLowerCase().startsWith(q) -
      M.values[a].name.toLowerCase().startsWith(q) || a - b);
  }
  foundAt = found.length ? 0 : -1;
  showResults(q);
  say(q ? `${plural(found.length, "instruction")} found` : "");
}

function showResults(q) {
  const list = $("results");
  list.replaceChildren(...found.slice(0, 12).map((v, k) => {
    const value = M.values[v];
    const src = value.source != null ? M.sources[value.source] : null;
    return h("li", { role: "option", id: `found-${k}`,
      "aria-selected": k === foundAt ? "true" : "false",
      on: { mousedown: () => pickFound(k) } },
      h("b", {}, value.name), ` ${value.opcode} ${value.shape} `,
      h("span", { class: "quiet" }, src ? `${src.op_name} ${where(src)}` : ""));
  }));
  list.hidden = !q || !found.length;
  $("search").setAttribute("aria-expanded", String(!list.hidden));
  if (foundAt >= 0)
    $("search").setAttribute("aria-activedescendant", `found-${foundAt}`);
  else $("search").removeAttribute("aria-activedescendant");
}

function closeResults() {
  $("results").hidden = true;
  $("search").setAttribute("aria-expanded", "false");
}

function searchKey(ev) {
  const n = Math.min(found.length, 12);
  if (ev.key === "ArrowDown" && n) foundAt = (foundAt + 1) % n;
  else if (ev.key === "ArrowUp" && n) foundAt = (foundAt + n - 1) % n;
  else if (ev.key === "Enter" && foundAt >= 0) { pickFound(foundAt); return; }
  else if (ev.key === "Escape") { closeResults(); return; }
  else return;
  ev.preventDefault();
  showResults($("search").value.trim().toLowerCase());
}

function pickFound(k) {
  const v = found[k];
  closeResults();
  if (S.tab === "hlo") { lightValue(v, true); return; }
  if (S.tab !== "graph") showTab("graph");
  const nodes = byValue.get(v);
  if (nodes) chooseNode(nodes[0]);
  else whyGone(v);
}

/* ---- tabs ---- */

const TABS = { graph: ["Graph", drawGraph], hlo: ["HLO", drawHlo],
  memory: ["Memory", drawMemory], predict: ["Predict", drawPredict] };
const drawn = new Set();

function drawTabs() {
  const names = Object.keys(TABS);
  fill($("tabs"), {}, names.map((t) =>
    h("button", { role: "tab", id: `tab-${t}`, "aria-controls": t,
      "aria-selected": "false", tabindex: "-1",
      on: { click: () => showTab(t), keydown: (ev) => {
        const d = { ArrowRight: 1, ArrowLeft: -1 }[ev.key];
        if (!d) return;
        ev.preventDefault();
        const to = names[(names.indexOf(t) + d + names.length) % names.length];
        showTab(to);
        $(`tab-${to}`).focus();
      } } }, TABS[t][0])));
  fill($("stage"), {}, names.map((t) =>
    h("section", { id: t, role: "tabpanel", "aria-labelledby": `tab-${t}`,
      hidden: true })));
}

function showTab(t) {
  S.tab = t;
  for (const name in TABS) {
    const on = name === t;
    $(name).hidden = !on;
    $(`tab-${name}`).setAttribute("aria-selected", String(on));
    $(`tab-${name}`).tabIndex = on ? 0 : -1;
  }
  if (!drawn.has(t)) { drawn.add(t); TABS[t][1]($(t)); }
}
