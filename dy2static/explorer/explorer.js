"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const lines = new Map();            // the user's line -> the elements that come from it, as far as panes have been opened
const titles = new Map();           // element -> the title of its pane
let kept = "";

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function known(element, key, title) {
  if (!key) return;
  element.dataset.key = key;
  titles.set(element, title);
  for (const line of key.split("|")) {        // what is fused comes from several lines
    if (!lines.has(line)) lines.set(line, []);
    lines.get(line).push(element);
    if (kept && kept.split("|").includes(line)) element.classList.add("hit");
  }
}

function elementsOf(key) { return [...new Set(key.split("|").flatMap(line => lines.get(line) || []))]; }

function list(title, items) {
  const found = make("ol", { class: "lines", role: "listbox", tabindex: "0", "aria-label": title });
  items.forEach((item, number) => { item.id = `line-${title}-${number}`.replace(/\W+/g, "-"); item.setAttribute("role", "option"); });
  found.append(...items);
  return found;
}

function micro(seconds) {
  const each = seconds * 1e6 / (data.timed.calls || 1);
  return !seconds ? "" : each < 1000 ? `${each.toFixed(1)} µs` : `${(each / 1000).toFixed(1)} ms`;
}

function sourceLine(line, most, title) {
  const time = make("span", { class: "time" });
  const spent = line.seconds + line.backward;
  if (spent) time.append(make("span", { class: "bar", style: `width:${Math.max(1, 24 * spent / most)}px` }),
    micro(line.seconds) || "0", line.backward ? make("span", { class: "backward", title: "backward" }, ` + ${micro(line.backward)}`) : "");
  const item = make("li", { title: line.marks.join("\n") }, make("span", { class: "number" }, String(line.number)),
    make("span", { class: `state ${line.state}` }), ...(data.timed ? [time] : []), line.text,
    make("span", { class: "hidden" }, line.words ? ` (${line.words})` : ""));
  known(item, line.key, title);
  item.marks = line.marks;
  return item;
}

function drawSource() {
  const all = data.sources.flatMap(source => source.lines);
  const most = Math.max(...all.map(line => line.seconds + line.backward), 1e-12);
  const section = document.getElementById("source");
  if (data.timed && data.timed.backward) section.classList.add("with-backward");
  data.sources.forEach((source, number) => {
    const box = make("details", number ? {} : { open: "" }, make("summary", {}, make("h2", {}, source.title), " ",
      make("span", { class: "dim" }, source.file)));
    fill(box, () => box.append(list(source.title, source.lines.map(line => sourceLine(line, most, "source")))));
    section.append(box);
  });
  section.append(make("p", { class: "why", id: "why" }));
}

function fill(box, draw) {          // what is in a closed box is made when it is opened
  if (box.open) draw();
  else box.addEventListener("toggle", draw, { once: true });
}

function drawPanes() {
  data.panes.forEach((pane, number) => {
    const size = pane.groups.reduce((sum, group) => sum + group.lines.length, 0);
    const box = make("details", number === 1 || data.panes.length === 1 ? { open: "" } : {},
      make("summary", {}, make("h2", {}, pane.title), " ", make("span", { class: "dim" }, `${size} lines`)));
    fill(box, () => pane.groups.forEach((group, k) => {
      const items = () => list(`${pane.title} ${group.title}`, group.lines.map(([text, key]) => {
        const item = make("li", {}, text);
        known(item, key, pane.title.toLowerCase());
        return item;
      }));
      if (!group.title) { box.append(items()); return; }
      const inner = make("details", k ? {} : { open: "" }, make("summary", {}, group.title));
      fill(inner, () => inner.append(items()));
      box.append(inner);
    }));
    document.getElementById("panes").append(box);
  });
}

function table(header, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...header.map(text => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(cell => make("td", {}, String(cell)))))));
}

function fact(title, draw) {
  const box = make("details", {}, make("summary", {}, make("h2", {}, title)));
  fill(box, () => box.append(draw()));
  document.getElementById("facts").append(box);
}

function timeline() {
  const points = data.memory.points, width = 900, height = 120;
  const most = Math.max(...points.map(point => point[2]), 1), step = width / Math.max(points.length, 1);
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Bytes alive after each operation, at most ${most.toLocaleString()}`);
  points.forEach(([name, key, bytes], k) => {
    const bar = document.createElementNS(space, "rect");
    const tall = Math.max(1, height * bytes / most);
    for (const [attribute, value] of Object.entries({ x: k * step, y: height - tall, width: Math.max(step - 0.5, 0.5), height: tall }))
      bar.setAttribute(attribute, value);
    const title = document.createElementNS(space, "title");
    title.textContent = `${name}  ${key}: ${bytes.toLocaleString()} bytes`;
    bar.append(title);
    known(bar, key, "memory");
    svg.append(bar);
  });
  const names = ["kept", "forward", "results", "backward", "gradients", "peak"];
  return make("div", {}, table(["bytes", ""], names.map(name => [name, data.memory[name].toLocaleString()])),
    make("p", { class: "dim", style: "margin:0 10px" }, "Bytes of arrays of known sizes after each operation, before memory is reused."), svg);
}

function drawFacts() {
  if (data.memory) fact("Memory", timeline);
  fact("Cache", () => make("div", {}, table(["", ""], Object.entries(data.info)),
    table(["why no program fitted", "the call", "its arguments"], data.misses.map(miss => [miss.reason, miss.result, miss.call]))));
  if (data.guards.length) fact(`Guards (${data.guards.length})`, () => table(["this program is used while"], data.guards.map(text => [text])));
  if (data.splits.length) fact("Stored Variables that split the gradients", () => table([""], data.splits.map(text => [text])));
  if (data.cuts.length) fact(`Cuts (${data.cuts.length})`, () => table(["line", "why it runs as Python", "way out"],
    data.cuts.map(cut => [cut.place, cut.reason, cut.hint])));
}

function show(key, element) {
  document.querySelectorAll(".hit").forEach(found => found.classList.remove("hit"));
  const all = elementsOf(key), marked = all.filter(found => found.marks);
  for (const found of all) found.classList.add("hit");
  document.getElementById("why").textContent = marked.length ?
    marked.map(line => `${line.dataset.key}  ${line.marks.join("; ")}`).join(" | ") : key.replaceAll("|", ", ");
  const pane = element && titles.get(element);
  const seen = new Set(pane ? [element.closest(".lines")] : []);
  for (const found of all) {           // bring the first line of each other pane into view
    const box = found.closest(".lines");
    if (!box || seen.has(box)) continue;
    seen.add(box);
    const at = found.offsetTop - box.offsetTop;
    if (at < box.scrollTop || at > box.scrollTop + box.clientHeight - 20) box.scrollTop = Math.max(0, at - box.clientHeight / 3);
  }
}

function say(key) {
  const counts = {};
  const all = elementsOf(key), marked = all.filter(found => found.marks);
  for (const found of all) counts[titles.get(found)] = (counts[titles.get(found)] || 0) + 1;
  document.getElementById("said").textContent = `${key.replaceAll("|", ", ")}: ${marked.map(line => line.marks.join("; ") + ". ").join("")}` +
    Object.entries(counts).map(([title, count]) => `${count} in ${title}`).join(", ");
}

function keep(key, element) { kept = kept === key ? "" : key; show(key, element); say(key); }

document.addEventListener("mouseover", event => {
  const element = event.target.closest("[data-key]");
  if (element && !kept) show(element.dataset.key, element);
});
document.addEventListener("click", event => {
  const element = event.target.closest("[data-key]");
  if (element) keep(element.dataset.key, element);
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape") { kept = ""; show("", null); return; }
  const box = event.target.closest && event.target.closest(".lines");
  if (!box) return;
  const active = box.querySelector(".active");
  if (event.key === "Enter" && active && active.dataset.key) { keep(active.dataset.key, active); return; }
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!move) return;
  event.preventDefault();
  const next = active ? (move > 0 ? active.nextElementSibling : active.previousElementSibling) : box.firstElementChild;
  if (!next) return;
  if (active) { active.classList.remove("active"); active.removeAttribute("aria-selected"); }
  next.classList.add("active");
  next.setAttribute("aria-selected", "true");
  box.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
  if (next.dataset.key && !kept) { show(next.dataset.key, next); say(next.dataset.key); }
});

document.getElementById("name").textContent = data.name;
document.getElementById("summary").textContent = data.summary +
  (data.timed && data.timed.calls ? `; ${data.timed.calls} calls of ${micro(data.timed.seconds)} were timed` +
    (data.timed.backward ? `, and their backward, ${micro(data.timed.backward)}` : "") : "");
for (const [state, words] of [["native", "native code"], ["graph", "compiled"], ["opaque", "kept whole"], ["host", "host, at every call"],
  ["Python", "Python, at capture only"], ["cut", "Python between parts"], ["eager", "runs eagerly"]])
  document.getElementById("legend").append(make("span", { class: `state ${state}` }), words + "   ");
drawSource();
drawPanes();
drawFacts();
