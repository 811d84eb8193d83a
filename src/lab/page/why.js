/* The panel beside the graph: gate, verdict, reason, numbers, flip, source. */

/* ---- the why-panel ---- */

function why(...kids) {
  $("why").replaceChildren(...kids.flat(9).filter((k) => k));
  $("why").scrollTop = 0;
}
/* Lines of one paragraph joined; lists keep theirs. */
const unwrapped = (t) => t.replace(/([^\n])\n(?![\n\-*|\s])/g, "$1 ");
const pair = (k, v) => [h("dt", {}, k), h("dd", {}, v)];

function whyStart() {
  const calls = M.boxes.filter((b) => b.opcode === "custom-call")
    .map((b) => b.name);
  why(h("h2", {}, "Why"),
    h("p", {}, "Choose an edge, a kernel or a step of the queue below."),
    M.walls.slice(0, 4).map((w, k) => wallText(w, k)),
    M.walls.length > 4 && h("button", { class: "row", on: { click: whyWalls } },
      `All ${M.walls.length} walls`),
    calls.length > 0 && h("p", {}, "Library calls: ", calls.join(", "),
      ". What stands in one call was put there by a pass that knows the " +
      "pattern; that is not fusion."),
    h("h3", {}, "Values left in memory"),
    M.left.length ? M.left.slice().sort((a, b) => b.bytes - a.bytes)
      .slice(0, 12).map((l) => h("button", { class: "row", on: { click: () => {
        const n = M.nodes.findIndex((x) => M.left[x.left] === l);
        if (n >= 0) chooseNode(n);
      } } }, `${l.value} ${l.shape}, ${bytes(l.bytes)}: ${l.class}`))
      : h("p", {}, "None."),
    h("h3", {}, "Keys"),
    h("p", { class: "quiet" }, "/ search · 1–4 tabs · [ and ] step the queue · " +
      "arrows walk the drawing · Enter chooses"));
}

function whyWalls() {
  why(h("h2", {}, "Walls"), M.walls.map((w, k) => wallText(w, k)));
}

function whyGone(v) {
  const value = M.values[v];
  why(h("h2", {}, value.name), h("p", {}, `${value.opcode} ${value.shape}: ` +
    "it is not in the module after; another pass removed or replaced it."));
}

function wallText(w, k) {
  return h("div", {}, h("p", {}, h("span", { class: "badge wall" }, "WALL"),
    ` ${w.value} ${w.shape}, ${bytes(w.bytes)}, needs ${w.needs}. It crosses ` +
    `${w.crosses}.` + (w.row_bytes ? ` ${w.name} holds it row by row, ` +
    `${bytes(w.row_bytes)} a row.` : "") + (w.extent ? w.in_memory
      ? ` From runs of ${w.extent} on it crosses DRAM.`
      : ` From runs of ${w.extent} on a row outgrows L2.` : "")),
    !k && h("p", { class: "quiet" }, "No fusion removes a wall: a streaming " +
      "algorithm would."));
}

function leftText(l) {
  return h("p", {}, `Left in memory (${l.level}): ${bytes(l.bytes)}, ` +
    `${l.class}, read by ${l.readers.join(", ")}` + (l.trip_us == null ? "."
      : `; the trip is modelled at ${us(l.trip_us)}.`));
}

function verdictBadges(d) {
  const recorded = d.support === "recorded";
  return h("p", {},
    h("span", { class: `badge ${d.fused ? "fused" : "apart"}` },
      d.fused ? "FUSED" : "KEPT APART"), " ",
    h("span", { class: "badge" }, recorded ? "RECORDED" : "INFERRED"));
}

const SUPPORT = {
  recorded: "",
  agrees: "Read off the modules before and after. Our rules say the same; " +
    "the reason is theirs.",
  differs: "Read off the modules before and after. Our rules would have " +
    "decided the other way: the compiler's reason is not known.",
  silent: "Read off the modules before and after. Our rules were not asked " +
    "about this edge: the reason is not known.",
};

function sourceRow(label, src) {
  return src && pair(label, `${src.op_name} ${where(src)}`);
}

function whyDecision(d, e) {
  const r = d.reason ? M.reasons[d.reason] : null;
  const n = e ? M.nodes[e.from] : null;
  why(h("h2", {}, `${d.value} → ${d.reader || "all its readers"}`),
    verdictBadges(d),
    SUPPORT[d.support] && h("p", { class: "quiet" }, SUPPORT[d.support]),
    r && h("p", {}, h("b", {}, d.reason), `: ${r.line}.`),
    d.text && !d.fused &&
      h("p", {}, "The compiler's words: ", h("q", {}, d.text)),
    h("dl", { class: "numbers" },
      d.gate && pair("gate", d.gate),
      d.unfused_us != null && pair("kernels apart", us(d.unfused_us)),
      d.fused_us != null && pair("as one", us(d.fused_us)),
      d.saved_us != null && pair("saves", us(d.saved_us)),
      d.threshold_us != null && pair("must exceed", us(d.threshold_us)),
      pair("value", bytes(d.bytes)),
      d.asked > 1 && pair("asked", `${d.asked} times`),
      d.order && M.label === "RECORDED" &&
        pair("order of fusing", String(d.order)),
      d.fused && d.text && pair("became", d.text),
      d.flip && pair("would flip it", d.flip),
      sourceRow("made at", d.source),
      sourceRow("read at", d.reader_source),
      pair("pass", d.pass),
      pair("as it saw it", `${d.producer} → ${d.consumer || "all"}`)),
    r && r.page && h("details", { open: true }, h("summary", {},
      `lawson help ${d.reason}`), h("div", { class: "page" },
      unwrapped(r.page.replace(/^# .*\n+/, "").trim()))),
    n && n.left != null && leftText(M.left[n.left]),
    n && n.wall != null && wallText(M.walls[n.wall]));
}

function whyUnasked(e) {
  const a = M.nodes[e.from], b = M.nodes[e.to];
  const because = a.opcode === "parameter" ? `${a.name} is an input: it comes ` +
      "from memory, and no kernel makes it."
    : a.opcode === "constant" ? `${a.name} is a constant: it is part of the ` +
      "kernel's code or data."
    : e.inside ? "It came into the kernel along with an edge that was."
    : !b.runs ? `${b.name} (${b.opcode}) runs nothing: it only names memory.`
    : !a.runs ? `${a.name} (${a.opcode}) runs nothing: it only names memory.`
    : "The passes had no question about it.";
  why(h("h2", {}, `${a.name} → ${b.name}`),
    h("p", {}, "No gate was asked about this edge. ", because),
    h("dl", { class: "numbers" }, pair("bytes", bytes(e.bytes)),
      pair("where", e.inside ? `inside ${M.boxes[a.box].name}` :
        "between kernels")),
    a.left != null && leftText(M.left[a.left]),
    a.wall != null && wallText(M.walls[a.wall]));
}
