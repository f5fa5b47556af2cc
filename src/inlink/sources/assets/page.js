"use strict";
const { nodes, links } = JSON.parse(document.getElementById("data").textContent);
const svg = document.getElementById("web"), view = document.getElementById("view");
const facts = document.getElementById("facts"), chosen = document.getElementById("chosen");
const make = (kind, parent) => parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", kind));

const largest = Math.max(...nodes.map((node) => node.value), 0) || 1;
nodes.forEach((node, k) => {
  const turn = k * 2.399963, far = 22 * Math.sqrt(k);
  Object.assign(node, { k, x: far * Math.cos(turn), y: far * Math.sin(turn), dx: 0, dy: 0, near: new Set([k]) });
  node.r = Math.max(16 * Math.sqrt(node.value / largest), 4);
});
for (const [from, to] of links) {
  nodes[from].near.add(to);
  nodes[to].near.add(from);
}
const lines = links.map(([from, to]) => {
  const line = make("line", view);
  line.setAttribute("marker-end", "url(#tip)");
  return Object.assign(line, { from: nodes[from], to: nodes[to] });
});
for (const node of nodes) {
  node.g = make("g", view);
  node.g.classList.add("node");
  const circle = make("circle", node.g);
  circle.setAttribute("r", node.r);
  circle.classList.toggle("centre", node.k === 0);
  make("title", circle).textContent = node.name;
  node.text = make("text", node.g);
  node.text.textContent = node.label;
}

// Fruchterman and Reingold's forces, with the heat going down. A node that is dragged stays where it was put.
let heat = 1;
function step() {
  for (const a of nodes) {
    for (const b of nodes) {
      if (a === b) continue;
      const x = a.x - b.x || 0.01 * (a.k - b.k), y = a.y - b.y || 0.01, square = Math.max(x * x + y * y, 25);
      const push = (9000 + 200 * (a.r + b.r)) / square;
      a.dx += (x / Math.sqrt(square)) * push;
      a.dy += (y / Math.sqrt(square)) * push;
    }
    a.dx -= a.x * 0.02;
    a.dy -= a.y * 0.03;
  }
  for (const { from, to } of lines) {
    if (from === to) continue;
    const pull = 0.2 / Math.sqrt(Math.max(Math.min(from.near.size, to.near.size), 1));
    const x = (to.x - from.x) * pull, y = (to.y - from.y) * pull;
    from.dx += x; from.dy += y; to.dx -= x; to.dy -= y;
  }
  for (const node of nodes) {
    const length = Math.hypot(node.dx, node.dy) || 1, most = Math.min(length, 30) * heat;
    if (!node.fixed) {
      node.x += (node.dx / length) * most;
      node.y += (node.dy / length) * most;
    }
    node.dx = node.dy = 0;
  }
  heat *= 0.985;
}
function draw() {
  for (const { g, x, y } of nodes) g.setAttribute("transform", `translate(${x.toFixed(1)},${y.toFixed(1)})`);
  for (const line of lines) {
    const { from, to } = line, x = to.x - from.x, y = to.y - from.y, length = Math.hypot(x, y) || 1;
    const ends = { x1: from.x, y1: from.y, x2: to.x - (x / length) * to.r, y2: to.y - (y / length) * to.r };
    for (const end in ends) line.setAttribute(end, ends[end].toFixed(1));
  }
}
// Labels keep their size on the screen. A label is shown if it covers no disc and no label of a better node.
const ranked = [nodes[0], ...nodes.slice(1).sort((a, b) => b.value - a.value)];
function label() {
  const shown = [], size = 11 / zoom;
  for (const node of ranked) {
    const wide = 0.6 * size * node.label.length, away = node.r + 3 / zoom;
    const spots = [[away, 0], [-away - wide, 0], [-wide / 2, away + size / 2], [-wide / 2, -away - size / 2]];
    const free = ([x, y]) => {
      const left = node.x + x, right = left + wide, top = node.y + y - size / 2, bottom = top + size;
      const off = (x0, y0, x1, y1) => x1 < left || x0 > right || y1 < top || y0 > bottom;
      return shown.every((box) => off(...box)) && nodes.every(
        (other) => other === node || off(other.x - other.r, other.y - other.r, other.x + other.r, other.y + other.r));
    };
    const spot = spots.find(free);
    node.g.classList.toggle("small", !spot);
    const [x, y] = spot ?? spots[0];
    if (spot) shown.push([node.x + x, node.y + y - size / 2, node.x + x + wide, node.y + y + size / 2]);
    node.text.setAttribute("x", x);
    node.text.setAttribute("y", y + size * 0.35);
    node.text.style.fontSize = `${size}px`;
    node.text.style.strokeWidth = `${3 / zoom}px`;
  }
}
function run() {
  step();
  draw();
  label();
  if (heat > 0.02) requestAnimationFrame(run);
  else fit(), document.body.dataset.settled = "yes";
}
for (let k = 0; k < 200; k++) step();

// The view: a point of the window is (x, y) · zoom + shift.
let zoom = 1, shift = [0, 0], held = null;
function place() {
  view.setAttribute("transform", `translate(${shift}) scale(${zoom})`);
  label();
}
function fit() {
  const box = svg.getBoundingClientRect(), xs = nodes.map((n) => n.x), ys = nodes.map((n) => n.y);
  const [left, right] = [Math.min(...xs) - 150, Math.max(...xs) + 150];
  const [top, bottom] = [Math.min(...ys) - 30, Math.max(...ys) + 30];
  zoom = Math.min(box.width / (right - left), box.height / (bottom - top), 1.5);
  shift = [box.width / 2 - (zoom * (left + right)) / 2, box.height / 2 - (zoom * (top + bottom)) / 2];
  place();
}
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect(), at = [event.clientX - box.left, event.clientY - box.top];
  const factor = Math.exp(-event.deltaY / 500);
  shift = shift.map((value, k) => at[k] - (at[k] - value) * factor);
  zoom *= factor;
  place();
}, { passive: false });
svg.addEventListener("pointerdown", (event) => {
  const node = nodes.find((one) => one.g.contains(event.target));
  held = { node, x: event.clientX, y: event.clientY, moved: false };
  svg.setPointerCapture(event.pointerId);
});
svg.addEventListener("pointermove", (event) => {
  if (!held) return;
  const x = event.clientX - held.x, y = event.clientY - held.y;
  if (!held.moved && Math.hypot(x, y) < 3) return;
  Object.assign(held, { x: event.clientX, y: event.clientY, moved: true });
  if (held.node) {
    Object.assign(held.node, { fixed: true, x: held.node.x + x / zoom, y: held.node.y + y / zoom });
    draw();
    label();
  } else {
    shift = [shift[0] + x, shift[1] + y];
    place();
  }
});
svg.addEventListener("pointerup", () => {
  if (held && !held.moved) choose(held.node ? [held.node] : []);
  held = null;
});

function choose(some) {
  const near = new Set(some.flatMap((node) => [...node.near])), few = new Set(some);
  svg.classList.toggle("choosing", some.length > 0);
  for (const node of nodes) node.g.classList.toggle("near", some.length === 1 ? near.has(node.k) : few.has(node));
  for (const line of lines) line.classList.toggle("near", few.has(line.from) || few.has(line.to));
  if (some.length !== 1) {
    chosen.textContent = some.length ? `${some.length} nodes found` : "";
    return;
  }
  const [node] = some, into = lines.filter((line) => line.to === node).length;
  const out = lines.filter((line) => line.from === node).length;
  chosen.textContent = "";
  const name = document.createElement(/^https?:\/\//.test(node.name) ? "a" : "span");
  if (name.tagName === "A") Object.assign(name, { href: node.name, rel: "noreferrer noopener", target: "_blank" });
  name.textContent = node.name;
  chosen.append(name, ` · ${facts.dataset.by} ${node.value} · ${into} links in, ${out} links out on this page`);
}
document.getElementById("search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  choose(wanted ? nodes.filter((node) => node.name.toLowerCase().includes(wanted)) : []);
  if (wanted && !svg.classList.contains("choosing")) chosen.textContent = "No node has this in its name";
});
const data = JSON.parse(document.getElementById("data").textContent);
facts.dataset.by = data.by;
facts.textContent = data.facts;
fit();
run();
addEventListener("resize", fit);
