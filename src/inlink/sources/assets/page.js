"use strict";
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent), { nodes } = data;
const svg = $("web");
const draw = (kind, parent) => parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", kind));
const make = (kind, parent, text = "") => Object.assign(parent.appendChild(document.createElement(kind)), { textContent: text });
const set = (element, values) => Object.entries(values).forEach(([name, value]) => element.setAttribute(name, value));

$("facts").textContent = `${data.facts}. The area of a disc shows ${data.by}.`;
// Characters that nobody sees, or that turn the direction of text around, are shown as �.
const plain = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, "\ufffd");
const sections = data.sections.map((name) => ({ name: plain(name), nodes: [] }));
nodes.forEach((node, k) => {
  node.k = k;
  node.label = plain(node.label);
  node.drawn = 0;
  node.home = sections[node.section];
  node.home.nodes.push(node);
  node.links = new Map([[node, "here"]]);
});
const links = data.links.map(([i, j], k) => {
  const [from, to] = [nodes[i], nodes[j]];
  from.links.set(to, from.links.has(to) ? "both" : "out");
  to.links.set(from, to.links.has(from) ? "both" : "in");
  const drawn = k < data.drawn;
  from.drawn += drawn;
  to.drawn += drawn;
  return { from, to, drawn };
});

// The layout: a tile for each section, and forces between its nodes.
/** Give each section a part of a rectangle, by its number of nodes: two halves of similar size, along the longer side. */
function tile(some, x, y, wide, high) {
  if (some.length < 2) return some.forEach((section) => Object.assign(section, { x, y, wide, high }));
  const size = (part) => part.reduce((sum, section) => sum + section.nodes.length + 3, 0), all = size(some);
  let k = 1;
  while (k < some.length - 1 && size(some.slice(0, k + 1)) <= all / 2) k += 1;
  const share = size(some.slice(0, k)) / all;
  if (wide > 1.3 * high) {
    tile(some.slice(0, k), x, y, wide * share, high);
    tile(some.slice(k), x + wide * share, y, wide * (1 - share), high);
  } else {
    tile(some.slice(0, k), x, y, wide, high * share);
    tile(some.slice(k), x, y + high * share, wide, high * (1 - share));
  }
}

/** Keep a node in its tile, below the heading. */
function clamp(node) {
  const { x, y, wide, high } = node.home, side = Math.min(node.r + 6, wide / 2), head = Math.min(node.r + 22, high / 2);
  node.x = Math.min(Math.max(node.x, x + side), x + wide - side);
  node.y = Math.min(Math.max(node.y, y + head), y + high - Math.min(node.r + 8, high / 2));
}

function layout(width, height) {
  tile([...sections].sort((a, b) => b.nodes.length - a.nodes.length), 0, 0, width, height);
  const largest = Math.max(...nodes.map((node) => node.value)) || 1;
  const most = Math.min(Math.max(0.28 * Math.sqrt((width * height) / nodes.length), 6), 22);
  for (const { nodes: some, x, y, wide, high } of sections) {
    some.forEach((node, k) => {
      const turn = 2.399963 * k, far = Math.sqrt((k + 0.5) / some.length) / 2;
      node.r = Math.max(most * Math.sqrt(node.value / largest), 2.5);
      node.x = x + wide * (0.5 + far * Math.cos(turn));
      node.y = y + high * (0.5 + far * Math.sin(turn));
      clamp(node);
    });
  }
  // Fruchterman and Reingold's forces, with the heat going down: only near nodes repel each other, else all would stand
  // at the borders. Labels are wide, so nodes keep more distance from side to side.
  for (let heat = 1; heat > 0.03; heat *= 0.97) {
    for (const node of nodes) node.dx = node.dy = 0;
    for (const { nodes: some, wide, high } of sections) {
      const apart = (0.6 * wide * high) / some.length;
      for (let i = 1; i < some.length; i += 1) {
        for (let j = 0; j < i; j += 1) {
          const a = some[i], b = some[j], x = 0.6 * (a.x - b.x), y = a.y - b.y || 0.01, square = x * x + y * y + 1;
          if (square > 2.5 * apart) continue;
          const push = apart / square;
          a.dx += x * push; a.dy += y * push; b.dx -= x * push; b.dy -= y * push;
        }
      }
    }
    for (const { from, to, drawn } of links) {
      if (!drawn || from.home !== to.home) continue;
      const x = to.x - from.x, y = to.y - from.y, pull = Math.hypot(x, y) / (15 + 5 * Math.max(from.drawn, to.drawn));
      const [dx, dy] = [x * pull, y * pull].map((value) => value / (1 + pull / 8));
      from.dx += dx; from.dy += dy; to.dx -= dx; to.dy -= dy;
    }
    for (const node of nodes) {
      const far = Math.hypot(node.dx, node.dy) || 1, step = Math.min(far, 40 * heat) / far;
      node.x += node.dx * step;
      node.y += node.dy * step;
      clamp(node);
    }
  }
  for (let k = 0; k < 40; k += 1) {
    for (const { nodes: some } of sections) {
      for (let i = 1; i < some.length; i += 1) {
        for (let j = 0; j < i; j += 1) {
          const a = some[i], b = some[j], x = a.x - b.x, y = a.y - b.y || 0.01, far = Math.hypot(x, y);
          const lack = (a.r + b.r + 3 - far) / 2 / far;
          if (lack <= 0) continue;
          a.x += x * lack; a.y += y * lack; b.x -= x * lack; b.y -= y * lack;
        }
      }
    }
    nodes.forEach(clamp);
  }
}

// The picture. A point of the layout is at (x, y) · zoom + shift of the window.
svg.style.setProperty("--faintness", Math.min(0.35, 6 / Math.sqrt(data.drawn + 1)));
let box = { width: 0, height: 0 }, zoom = 1, shift = [0, 0], chosen = null, lit = null;
for (const section of sections) section.rect = draw("rect", $("tiles"));
for (const link of links) if (link.drawn) link.line = draw("line", $("lines"));
for (const node of nodes) {
  node.circle = draw("circle", $("discs"));
  node.circle.style.fill = `hsl(${205 + 137.5 * node.section} 45% var(--light))`;
  draw("title", node.circle).textContent = plain(node.name);
}
const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;
const wideness = (text, font) => ((pen.font = `${font} ${family}`), pen.measureText(text).width);
for (const node of nodes) {
  const { name } = node.home, folder = name.slice(0, name.lastIndexOf("/") + 1);
  const short = node.label.startsWith(folder) && node.label !== folder ? node.label.slice(folder.length) : node.label;
  node.short = short.length > 30 ? `${short.slice(0, 14)}…${short.slice(-15)}` : short;
  node.wide = wideness(node.short, "11px");
}
for (const section of sections) section.head = wideness(section.name, "600 12px");

const screen = ({ x, y }) => [x * zoom + shift[0], y * zoom + shift[1]];
function place() {
  shift = [Math.min(Math.max(shift[0], box.width * (1 - zoom)), 0), Math.min(Math.max(shift[1], box.height * (1 - zoom)), 0)];
  for (const section of sections) {
    const [x, y] = screen(section);
    set(section.rect, { x, y, width: section.wide * zoom, height: section.high * zoom });
  }
  for (const node of nodes) {
    [node.at, node.size] = [screen(node), node.r * Math.sqrt(zoom)];
    set(node.circle, { cx: node.at[0], cy: node.at[1], r: node.size });
  }
  for (const { line, from, to } of links) {
    if (!line) continue;
    const x = to.at[0] - from.at[0], y = to.at[1] - from.at[1], end = to.size / (Math.hypot(x, y) || 1);
    set(line, { x1: from.at[0], y1: from.at[1], x2: to.at[0] - x * end, y2: to.at[1] - y * end });
  }
  label();
}

/** Give the links of the chosen node their lines and colours; links that are not drawn otherwise lose their lines. */
function colour() {
  for (const link of links) {
    const way = link.from === chosen ? "out" : link.to === chosen ? "in" : "";
    if (way) link.line ??= draw("line", $("lines"));
    else if (link.line && !link.drawn) link.line = void link.line.remove();
    link.line?.setAttribute("class", way);
  }
}

/** Name the sections, then the nodes, the best first. No name covers a name; only the best may cover a disc. */
function label() {
  const taken = [];
  const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const free = (spot) => spot[0] >= 0 && spot[1] >= 0 && spot[2] <= box.width && spot[3] <= box.height && !taken.some((other) => meet(spot, other));
  const write = (text, name, spot) => {
    const element = draw("text", $("labels"));
    element.textContent = text;
    set(element, { class: name, x: spot[0] + 2, y: spot[3] - 4 });
    taken.push(spot);
  };
  $("labels").replaceChildren();
  for (const section of sections.length > 1 ? sections : []) {
    const [left, top] = screen(section).map((value) => Math.max(value, 0) + 4), spot = [left, top, left + section.head + 4, top + 17];
    const [right, bottom] = screen({ x: section.x + section.wide, y: section.y + section.high });
    if (spot[2] < right && spot[3] < bottom && free(spot)) write(section.name, "heading", spot);
  }
  const seen = nodes.filter(({ at: [x, y] }) => x > 0 && y > 0 && x < box.width && y < box.height);
  const disc = ({ at: [x, y], size }) => [x - size, y - size, x + size, y + size];
  const some = lit === null ? seen : seen.filter((node) => lit.has(node));
  for (const node of some.sort((a, b) => (b === chosen) - (a === chosen) || a.k - b.k)) {
    const { at: [x, y], size, wide } = node, far = size + 1, less = 0.7 * far;
    const spots = [
      [far, -8], [-far - wide, -8], [-wide / 2, far], [-wide / 2, -far - 16],
      [less, less], [less, -less - 16], [-less - wide, less], [-less - wide, -less - 16],
    ].map(([left, top]) => [x + left, y + top, x + left + wide + 4, y + top + 16]).filter(free);
    const covers = (spot) => seen.filter((other) => other !== node && meet(spot, disc(other))).length;
    const best = node.k < 15 || lit !== null ? spots.sort((a, b) => covers(a) - covers(b))[0] : spots.find((spot) => !covers(spot));
    if (best) write(node.short, "", best);
  }
}

function resize() {
  const { width, height } = svg.getBoundingClientRect();
  if (!width || !height || (width === box.width && height === box.height)) return;
  box = { width, height };
  [zoom, shift] = [1, [0, 0]];
  layout(width, height);
  place();
}

// Hands: one finger or the mouse moves the map, two fingers or the wheel zoom it, a click chooses the nearest node.
const held = new Map();
let moved = 0;
const point = (event) => [event.clientX - svg.getBoundingClientRect().left, event.clientY - svg.getBoundingClientRect().top];
function grow(factor, at) {
  const before = zoom;
  zoom = Math.min(Math.max(zoom * factor, 1), 30);
  shift = shift.map((value, k) => at[k] - (at[k] - value) * (zoom / before));
  place();
}
svg.addEventListener("wheel", (event) => (event.preventDefault(), grow(Math.exp(-event.deltaY / 400), point(event))), { passive: false });
$("closer").onclick = () => grow(1.6, [box.width / 2, box.height / 2]);
$("farther").onclick = () => grow(1 / 1.6, [box.width / 2, box.height / 2]);
svg.addEventListener("pointerdown", (event) => {
  if (!held.size) moved = 0;
  held.set(event.pointerId, point(event));
  svg.setPointerCapture(event.pointerId);
});
svg.addEventListener("pointermove", (event) => {
  if (!held.has(event.pointerId)) return;
  const middle = () => [0, 1].map((k) => [...held.values()].reduce((sum, at) => sum + at[k], 0) / held.size);
  const spread = () => {
    const [a, b] = held.values();
    return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) || 1 : 1;
  };
  const [before, wide] = [middle(), spread()];
  held.set(event.pointerId, point(event));
  const after = middle();
  moved += Math.hypot(after[0] - before[0], after[1] - before[1]) + Math.abs(spread() - wide);
  shift = shift.map((value, k) => value + after[k] - before[k]);
  if (moved > 4) grow(spread() / wide, after);
});
for (const end of ["pointerup", "pointercancel"]) {
  svg.addEventListener(end, (event) => {
    if (!held.delete(event.pointerId) || held.size || moved > 4 || end === "pointercancel") return;
    const [x, y] = point(event), far = (node) => Math.hypot(node.at[0] - x, node.at[1] - y) - node.size;
    const nearest = nodes.reduce((best, node) => (far(node) < far(best) ? node : best));
    choose(far(nearest) < 10 ? nearest : null);
  });
}

// The table, and what is chosen in it or in the map.
const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
const columns = [
  ["name", (node) => node.label],
  [data.by, (node) => -node.value],
  ["in", (node) => -node.into],
  ["out", (node) => -node.out],
].filter(([title]) => title !== "inlinks");
for (const [title, order] of columns) {
  make("button", make("th", document.querySelector("thead tr")), title).onclick = () => {
    nodes.toSorted((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : a.k - b.k)).forEach((node) => node.row.parentNode.append(node.row));
  };
}
for (const node of nodes) {
  node.row = make("tr", document.querySelector("tbody"));
  const cell = make("td", node.row);
  const button = make("button", cell);
  node.way = make("span", button);
  button.append(node.label || node.name || "(no name)");
  button.onclick = () => choose(node);
  for (const [, order] of columns.slice(1)) make("td", node.row, number(Math.abs(order(node))));
}
const WAYS = { in: "→ ", out: "← ", both: "↔ ", here: "" };
function show() {
  const wanted = $("search").value.trim().toLowerCase();
  const has = (node) => node.name.toLowerCase().includes(wanted) || node.label.toLowerCase().includes(wanted);
  lit = chosen !== null ? chosen.links : wanted ? new Set(nodes.filter(has)) : null;
  svg.classList.toggle("choosing", lit !== null);
  $("all").hidden = lit === null;
  for (const node of nodes) {
    const way = chosen?.links.get(node) ?? "here";
    node.row.hidden = lit !== null && !lit.has(node);
    node.row.classList.toggle("here", node === chosen);
    node.way.textContent = WAYS[way];
    node.way.className = way;
    node.circle.classList.toggle("lit", lit !== null && lit.has(node));
    node.circle.classList.toggle("here", node === chosen);
  }
  const told = $("chosen");
  told.textContent = lit === null ? "Choose a node to see its links. Zoom the map to see more names." : chosen ? "" : `${lit.size} of ${nodes.length} names have this text`;
  if (chosen) {
    const web = /^https?:\/\//.test(chosen.name);
    const name = make(web ? "a" : "b", told, plain(chosen.name));
    if (web) Object.assign(name, { href: chosen.name, rel: "noreferrer noopener", target: "_blank" });
    told.append(` · ${data.by} ${number(chosen.value)} · ${number(chosen.into)} links in, ${number(chosen.out)} out. On this map: `);
    make("span", told, "→ links here").className = "in";
    told.append(", ");
    make("span", told, "← is linked from here").className = "out";
  }
  $("rows").scrollTop = 0;
  colour();
  place();
}
function choose(node) {
  chosen = node === chosen ? null : node;
  if (chosen) {
    $("search").value = "";
    const away = chosen.at.map((value, k) => (value < 0 || value > [box.width, box.height][k] ? 1 : 0));
    if (away.includes(1)) shift = [box.width / 2 - chosen.x * zoom, box.height / 2 - chosen.y * zoom];
  }
  show();
}
$("search").addEventListener("input", () => ((chosen = null), show()));
$("all").onclick = () => (($("search").value = ""), (chosen = null), show());
new ResizeObserver(resize).observe(svg);
resize();
choose(data.around ? nodes[0] : null);
