// The live page of a served model: reads /lifetime, draws it, and asks /predict and /explain. No library, no build step.
const EVERY = 1000, SLOWEST = 15000; // milliseconds between two looks; after failures they get rarer
const HEIGHT = 190, LEFT = 46, RIGHT = 12, TOP = 22, BOTTOM = 24; // of a chart
const find = (id) => document.getElementById(id);
const recorded = find("recorded");
let state = null, cursor = null, delay = EVERY;
const colours = new Map();

// -- words and numbers --

const whole = (n) => Math.round(n).toLocaleString("en");
const percent = (share, digits = 1) => share === 1 ? "100%" : (100 * share).toFixed(digits) + "%";
const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
function seconds(s) {
  if (!(s > 0)) return "–";
  const [value, unit] = s < 1e-3 ? [s * 1e6, "µs"] : s < 1 ? [s * 1e3, "ms"] : s < 120 ? [s, "s"] : [s / 60, "min"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
// Control characters, and those that change the direction of text, must not disguise what an input says.
const plain = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (sign) => sign === "\n" || sign === "\t" ? " " : "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));

// -- elements --

function make(kind, name, attributes, children) {
  const node = kind ? document.createElementNS(kind, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key === "colour") node.style.setProperty("--c", value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (name, attributes = {}, ...children) => make(null, name, attributes, children);
const svg = (name, attributes = {}, ...children) => make("http://www.w3.org/2000/svg", name, attributes, children);
const KNOWN = ["student", "search", "learned tables", "bound", "branch", "black box", "solver", "nobody"];
const FIXED = { student: 0, search: 0, bound: 2, branch: 3, "learned tables": 5, "black box": 1, solver: 1, nobody: 4 };
function colour(source) {
  if (!colours.has(source)) colours.set(source, `var(--c${FIXED[source] ?? 3 + colours.size % 3})`);
  return colours.get(source);
}
const sources = () => [...new Set(state.windows.flatMap((each) => Object.keys(each.by)))]
  .sort((one, other) => KNOWN.indexOf(one) - KNOWN.indexOf(other));
const asked = (by) => (by["black box"] ?? 0) + (by.solver ?? 0);

// -- charts: all share the axis of answers, the marks and the cursor --

function chart({ title, about, keys = [], top, log = false, ticks, draw }) {
  const windows = state.windows, width = Math.max(240, (find("charts").clientWidth - 12) / columns() - 30);
  const first = windows[0].first - 1, last = Math.max(windows.at(-1).last, first + 1);
  const low = log ? Math.log10(log) : 0, high = log ? Math.log10(top) : top;
  const x = (n) => LEFT + (width - LEFT - RIGHT) * (n - first) / (last - first);
  const y = (value) => {
    const at = log ? Math.log10(Math.max(value, log)) : value;
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(1, Math.max(0, (at - low) / (high - low || 1))));
  };
  const body = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": `${title}. ${about}` });
  for (const [value, words] of ticks)
    body.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, words));
  const suspect = state.trust.suspect;
  if (suspect) body.append(svg("rect", { class: "suspect", x: x(suspect[0] - 1), y: TOP, height: HEIGHT - TOP - BOTTOM,
    width: Math.max(2, x(suspect[1]) - x(suspect[0] - 1)) }));
  draw(body, x, y, windows);
  let free = -Infinity; // where the last mark's label ended
  for (const mark of state.marks.filter((each) => each.kind !== "note" && each.at >= first)) {
    const alarm = mark.kind === "alarm", at = x(mark.at);
    body.append(svg("line", { class: alarm ? "mark alarm-mark" : "mark", x1: at, x2: at, y1: TOP - 6, y2: HEIGHT - BOTTOM },
      svg("title", {}, plain(mark.text))));
    const words = plain(mark.label).slice(0, 14), wide = 7 * words.length, from = Math.min(at - 4, width - wide);
    if (from < free && !alarm) continue;
    free = from + wide + 6;
    body.append(svg("text", { class: alarm ? "alarm-label" : "mark-label", x: from, y: TOP - 10 }, words));
  }
  for (const n of [first, Math.round((first + last) / 2), last])
    body.append(svg("text", { x: x(n), y: HEIGHT - 6, "text-anchor": n === first ? "start" : n === last ? "end" : "middle" }, whole(n)));
  if (cursor !== null) {
    const at = x(middle(windows[cursor]));
    body.append(svg("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }));
  }
  body.addEventListener("pointermove", (event) => {
    const n = first + (last - first) * (event.offsetX * width / (body.clientWidth || width) - LEFT) / (width - LEFT - RIGHT);
    point(windows.findIndex((each) => n <= each.last));
  });
  const key = keys.map(([words, hue, line]) => el("small", {}, el("i", { colour: hue, class: line ? "line" : "" }), plain(words)));
  return el("figure", {}, el("figcaption", {}, title, key.length ? key : el("small", {}, about)), body);
}
const columns = () => matchMedia("(max-width: 860px)").matches ? 1 : 2;
const middle = (window) => (window.first - 1 + window.last) / 2;
const size = (window) => window.last - window.first + 1;
const shares = [[0, "0"], [0.5, "50%"], [1, "100%"]];
function points(windows, x, y, value) {
  const known = windows.filter((each) => value(each) !== null);
  return known.map((each) => `${x(middle(each)).toFixed(1)},${y(value(each)).toFixed(1)}`);
}
function line(body, hue, places) {
  body.append(svg("polyline", { class: "series", colour: hue, points: places.join(" ") }));
  if (places.length <= 40)
    body.append(...places.map((place) => svg("circle", { class: "dot", colour: hue, r: 2.4, cx: place.split(",")[0], cy: place.split(",")[1] })));
}

const silent = () => state.trust.trusted === undefined && !state.total.agreement; // nothing that would have to be trusted

const whoAnswered = () => chart({
  title: "Who answered", about: "Share of each source.", top: 1, ticks: shares,
  keys: sources().map((source) => [source, colour(source)]),
  draw(body, x, y, windows) {
    const base = windows.map(() => 0), gap = windows.length < 60 ? 1 : 0;
    for (const source of sources())
      windows.forEach((each, n) => {
        const share = (each.by[source] ?? 0) / size(each);
        if (share) body.append(svg("rect", { class: "area", colour: colour(source), x: x(each.first - 1), y: y(base[n] + share),
          width: Math.max(1, x(each.last) - x(each.first - 1) - gap), height: y(base[n]) - y(base[n] + share) }));
        base[n] += share;
      });
  },
});

function agreement() {
  const { allowed } = state.trust, audited = state.windows.filter((each) => each.agreement);
  const least = Math.min(allowed ?? 1, ...audited.map((each) => each.agreement.low));
  const bottom = Math.max(0, Math.floor(10 * least) / 10 - (least < 0.1 ? 0 : 0.1)), shift = (share) => Math.max(0, share - bottom);
  const keys = [["agreement with the black box, 95% limits", "var(--c0)", true]];
  if (allowed !== undefined && allowed !== null) keys.push([`promised: ${percent(allowed)}`, "var(--bad)", true]);
  if (silent()) return chart({
    title: "Proved", about: "Share of the answers that are proved optimal.", top: 1, ticks: shares, keys: [["proved", "var(--c2)", true]],
    draw: (body, x, y, windows) => line(body, "var(--c2)", points(windows, x, y, (each) => each.proved / size(each))),
  });
  return chart({
    title: "Agreement", about: "Audited answers that are the black box's.", top: 1 - bottom, keys,
    ticks: [0, 0.5, 1].map((at) => [at * (1 - bottom), percent(bottom + at * (1 - bottom), 0)]),
    draw(body, x, y) {
      if (!audited.length) body.append(svg("text", { x: LEFT + 12, y: HEIGHT / 2 }, "Nothing was audited yet."));
      const up = points(audited, x, y, (each) => shift(each.agreement.high)), down = points(audited, x, y, (each) => shift(each.agreement.low));
      body.append(svg("polygon", { class: "band", colour: "var(--c0)", points: [...up, ...down.reverse()].join(" ") }));
      if (keys.length > 1) body.append(svg("line", { class: "allowed", x1: LEFT, x2: body.viewBox.baseVal.width - RIGHT, y1: y(shift(allowed)), y2: y(shift(allowed)) }));
      line(body, "var(--c0)", points(audited, x, y, (each) => shift(each.agreement.estimate)));
    },
  });
}

function time() {
  const all = state.windows.flatMap((each) => [each.seconds.median, each.seconds.p95]).filter((s) => s > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(...all, 1))), high = 10 ** Math.ceil(Math.log10(Math.max(...all, low * 10)) - 1e-9);
  const ticks = [];
  for (let at = low; at <= high * 1.01; at *= 10) ticks.push([at, seconds(at).replace(".0", "")]);
  return chart({
    title: "Time of an answer", about: "Half of the answers, and 95% of them, take at most this.", top: high, log: low, ticks,
    keys: [["half take at most", "var(--c0)", true], ["95% take at most", "var(--c1)", true]],
    draw(body, x, y, windows) {
      line(body, "var(--c1)", points(windows, x, y, (each) => each.seconds.p95));
      line(body, "var(--c0)", points(windows, x, y, (each) => each.seconds.median));
    },
  });
}

const calls = () => chart({
  title: "Calls of the black box", about: "For 100 answers; without hasten there would be 100.", top: Math.max(1, ...state.windows.map((each) => each.calls / size(each))),
  ticks: shares.map(([at]) => [at, String(100 * at)]), keys: [["calls for 100 answers", "var(--c1)", true], ["saved", "var(--c2)"]],
  draw(body, x, y, windows) {
    const places = points(windows, x, y, (each) => each.calls / size(each));
    const [first, last] = [windows[0], windows.at(-1)].map((each) => x(middle(each)));
    body.append(svg("polygon", { class: "band", colour: "var(--c2)", points: [...places, `${last},${y(1)}`, `${first},${y(1)}`].join(" ") }));
    line(body, "var(--c1)", places);
  },
});

function point(n) {
  if (n < 0 || n === cursor || !state.windows.length) return;
  cursor = Math.min(n, state.windows.length - 1);
  drawCharts();
}
function reading() {
  if (cursor === null || !state.windows[cursor]) return "Point at a window, or use ← and → in the charts, to read it.";
  const each = state.windows[cursor], by = Object.entries(each.by).map(([source, n]) => `${plain(source)} ${whole(n)}`).join(", ");
  const { agreement: found } = each;
  const agreed = found ? `; ${percent(found.estimate)} of ${plural(found.n, "audit")} agreed (limits ${percent(found.low)} to ${percent(found.high)})` : "";
  return `Answers ${whole(each.first)} to ${whole(each.last)}: ${by}; ${plural(each.calls, "call")} of the black box${agreed}; half took at most ${seconds(each.seconds.median)}, 95% ${seconds(each.seconds.p95)}.`;
}
function drawCharts() {
  if (!state?.windows?.length) {
    find("charts").replaceChildren(el("p", { class: "soft" }, "No answers yet: they are drawn here as they come."));
    return;
  }
  if (cursor !== null) cursor = Math.min(cursor, state.windows.length - 1);
  find("charts").replaceChildren(whoAnswered(), agreement(), time(), calls());
  find("reading").textContent = reading();
}

// -- the rest of the page --

function draw() {
  const { model, trust, total } = state, n = state.answers;
  const version = trust.version ? `, version ${trust.version}` : "", name = plain(model.name ?? "hasten");
  find("name").textContent = name;
  document.title = `${trust.trusted === false ? "⚠ " : ""}${name} · hasten`;
  find("about").textContent = plain(`${model.kind ?? "model"}${version} · ${recorded ? "recorded over" : "up for"} ${seconds(state.now)}`);
  const status = find("status");
  status.className = `status ${trust.trusted === false ? "bad" : "good"}`;
  status.textContent = trust.trusted === false ? "The black box answers" : trust.trusted === undefined ? "Serving" : "Trusted";
  const alarm = find("alarm"), suspect = trust.suspect;
  alarm.hidden = trust.trusted !== false || !(trust.alarm || suspect);
  if (!alarm.hidden) alarm.replaceChildren(el("strong", {}, "The black box seems to have changed."),
    plain(trust.alarm ?? ""), suspect && !String(trust.alarm ?? "").includes("may be wrong") ? ` Answers ${whole(suspect[0])} to ${whole(suspect[1])} may be wrong.` : "");
  const own = n - asked(total.by) - (total.by.nobody ?? 0);
  const found = state.windows.findLast((each) => each.agreement)?.agreement; // of late: what came before may be mended
  const tiles = [
    [whole(n), n === 1 ? "answer" : "answers"],
    [n ? percent(own / n) : "–", "answered without the black box"],
    [n ? whole(Math.max(0, n - total.calls)) : "–", `calls saved of ${whole(n)}`],
    silent() ? [n ? percent(total.proved / n) : "–", "proved optimal"] :
      [found ? percent(found.estimate) : "–", found ? `of the last ${plural(found.n, "audit")} agree (${percent(found.low)} to ${percent(found.high)})` : "agreement: no audits yet"],
    [seconds(total.seconds.median), `half of the answers; 95% within ${seconds(total.seconds.p95)}`],
  ];
  find("tiles").replaceChildren(...tiles.map(([value, words]) => el("li", {}, el("b", {}, value), el("span", {}, words))));
  if (trust.promise) find("about").append(` · ${plain(trust.promise)}`);
  drawCharts();
  find("changes").hidden = !state.marks.length;
  find("marks").replaceChildren(...[...state.marks].reverse().map((mark) => el("li", {}, `After ${whole(mark.at)}: ${plain(mark.text)}`)));
  const most = Math.max(1, ...state.asking.map(([, times]) => times));
  find("asking").replaceChildren(...state.asking.map(([reason, times]) => {
    const row = el("li", {}, el("span", {}, plain(reason)), el("b", {}, whole(times)));
    row.style.setProperty("--share", `${100 * times / most}%`);
    return row;
  }));
  if (!state.asking.length) find("asking").append(el("li", {}, el("span", { class: "soft" }, "It was not asked of late.")));
  find("recent").replaceChildren(...state.recent.map(row));
  if (!state.recent.length) find("recent").append(el("tr", {}, el("td", { colspan: 7, class: "soft" }, "None yet.")));
}

function row(each) {
  const sure = each.proved ? "proved" : each.probability === null ? "–" : percent(each.probability);
  const verdict = each.agreed === null ? null : el("small", {}, each.agreed ? "audited: agrees" : "audited: differs");
  const button = each.explains || each.explanation ? el("button", { type: "button", "aria-label": `Explain answer ${each.number}` }, "Explain") : null;
  button?.addEventListener("click", () => explain(each));
  return el("tr", {}, el("td", {}, whole(each.number)), el("td", {}, plain(each.text)),
    el("td", {}, plain(each.answer), each.reason ? el("small", {}, plain(each.reason)) : null),
    el("td", {}, el("span", { class: "by", colour: colour(each.source) }, plain(each.source)), each.version ? el("small", {}, plain(each.version)) : null),
    el("td", {}, sure, verdict), el("td", {}, seconds(each.seconds)), el("td", {}, button));
}

// -- asking: one answer explained, and one of your own --

async function post(path, body) {
  const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const found = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(found.error ?? `The server said ${reply.status}.`);
  return found;
}

async function explain(each) {
  const body = find("explained-body");
  find("explained-title").textContent = plain(each.text);
  body.replaceChildren(el("p", { class: "soft" }, "Searching and proving, step by step …"));
  find("explained").showModal();
  try {
    const found = each.explanation ?? await post("explain", { number: each.number });
    body.innerHTML = found.html; // made by this server, which escapes every label; the page's policy runs no script in it
    body.querySelectorAll(".hasten-seen").forEach(addSteps);
    if (each.probability !== null || each.reason)
      body.prepend(el("p", {}, plain([each.reason, each.probability === null ? "" : `The student gave it ${percent(each.probability)}.`].filter(Boolean).join(" "))));
  } catch (error) {
    body.replaceChildren(el("p", {}, plain(error.message)));
  }
}

// One picture at a time, with ← and →; or all at once.
function addSteps(part) {
  const steps = [...part.querySelectorAll(".cards figure")];
  if (steps.length < 2) return;
  let at = 0, all = false;
  const told = el("span", { "aria-live": "polite" }), back = el("button", { type: "button" }, "← Back"), next = el("button", { type: "button" }, "Next →"), both = el("button", { type: "button" }, "All");
  const show = () => {
    steps.forEach((step, n) => { step.hidden = !all && n !== at; });
    told.textContent = all ? plural(steps.length, "step") : `Step ${at + 1} of ${steps.length}`;
    back.disabled = all || at === 0;
    next.disabled = all || at === steps.length - 1;
    both.textContent = all ? "One by one" : "All";
  };
  const move = (by) => { at = Math.min(steps.length - 1, Math.max(0, at + by)); show(); };
  back.addEventListener("click", () => move(-1));
  next.addEventListener("click", () => move(1));
  both.addEventListener("click", () => { all = !all; show(); });
  const bar = el("div", { class: "steps", role: "group", "aria-label": "Steps" }, back, told, next, both);
  bar.addEventListener("keydown", (event) => { if (event.key === "ArrowLeft") move(-1); else if (event.key === "ArrowRight") move(1); });
  part.classList.add("stepping");
  part.querySelector(".cards").before(bar);
  show();
}

find("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  const told = find("tried"), written = find("input").value.trim();
  told.className = "";
  told.textContent = "…";
  try {
    let body = written;
    if (/^[[{]/.test(written)) try { body = JSON.parse(written); } catch { body = written; } // brackets mark entities, too
    const found = await post("predict", typeof body === "string" ? { text: body } : body);
    told.textContent = plain(JSON.stringify(found, null, 1)).slice(0, 4000);
    look();
  } catch (error) {
    told.className = "bad";
    told.textContent = plain(error.message);
  }
});
find("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
find("charts").addEventListener("keydown", (event) => {
  const n = state?.windows?.length ?? 0, at = cursor ?? n;
  const to = { ArrowLeft: at - 1, ArrowRight: Math.min(at + 1, n - 1), Home: 0, End: n - 1 }[event.key];
  if (to === undefined || !n) return;
  event.preventDefault();
  point(Math.max(0, to));
});
new ResizeObserver(() => state && drawCharts()).observe(document.body);

// -- looking again and again --

let timer = 0;
async function look() {
  clearTimeout(timer);
  try {
    const reply = await fetch(`lifetime?since=${state?.revision ?? -1}`, { cache: "no-store" });
    if (!reply.ok) throw new Error(`The server said ${reply.status}.`);
    const found = await reply.json();
    delay = EVERY;
    state = found.windows ? found : { ...state, ...found };
    draw();
  } catch (error) {
    delay = Math.min(SLOWEST, 2 * delay);
    find("status").className = "status bad";
    find("status").textContent = "No connection";
  }
  timer = setTimeout(look, document.hidden ? 10 * delay : delay);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden && !recorded) look(); });
if (recorded) {
  state = JSON.parse(recorded.textContent);
  find("try").closest("section").hidden = true;
  draw();
} else look();
