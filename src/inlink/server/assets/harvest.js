// The harvest curve: the share of known rank that is fetched, against pages fetched.
import { $, count, draw, make, put, share } from "./dom.js";
import { get } from "./api.js";
import { key } from "./status.js";

let shown = null;

export async function showHarvest() {
  let found = await get("harvest");
  for (let more = 0; found.cursor !== null && more < 20; more += 1) found = await get("harvest");
  if (!found.points.length && found.cursor !== null) return;
  shown = found;
  redraw();
}

function redraw() {
  if (shown === null) return;
  if (!shown.points.length) {
    put($("harvest-curve"), make("p", { class: "note" }, "There is a curve once pages are fetched, if the crawl's policy ranks pages."));
    return;
  }
  const last = shown.points.at(-1);
  put(
    $("harvest-curve"),
    make(
      "p",
      {},
      `${count(last.fetched)} fetched pages hold ${share(last.share)} of the rank of all ${count(shown.known)} known pages. `,
      `In the order of their discovery, as many pages would hold an estimated ${share(last.by_discovery)}.`,
    ),
    curve(shown.points),
    make(
      "ul",
      { class: "legend" },
      make("li", {}, key("first"), "as fetched"),
      make("li", {}, key("second"), "in the order of discovery (an estimate)"),
    ),
  );
}

/** A number of pages, in a few characters. */
const short = (number) => (number >= 1e6 ? `${+(number / 1e6).toFixed(1)} M` : number >= 1e4 ? `${Math.round(number / 1e3)} k` : count(number));

function curve(points) {
  const width = Math.max(280, $("harvest-curve").clientWidth);
  const height = Math.min(300, Math.round(width / 2));
  const left = 44, right = 12, top = 8, bottom = 38;
  const most = points.at(-1).fetched;
  const highest = Math.max(...points.map((one) => Math.max(one.share, one.by_discovery)));
  const step = highest > 0.5 ? 0.25 : highest > 0.2 ? 0.1 : highest > 0.1 ? 0.05 : highest > 0.04 ? 0.02 : 0.01;
  const ceiling = Math.max(Math.ceil(highest / step) * step, step);
  const x = (fetched) => left + ((width - left - right) * fetched) / most;
  const y = (value) => height - bottom - ((height - top - bottom) * value) / ceiling;
  const line = (field) => [{ fetched: 0, [field]: 0 }, ...points].map((one) => `${x(one.fetched).toFixed(1)},${y(one[field]).toFixed(1)}`).join(" ");
  const parts = [];
  for (let value = 0; value <= ceiling + 1e-9; value += step) {
    parts.push(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    parts.push(draw("text", { class: "axis", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, `${Math.round(100 * value)} %`));
  }
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const anchor = part === 1 ? "end" : part === 0 ? "start" : "middle";
    parts.push(draw("text", { class: "axis", x: x(part * most), y: height - bottom + 16, "text-anchor": anchor }, short(Math.round(part * most))));
  }
  parts.push(draw("text", { class: "axis", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "pages fetched"));
  parts.push(draw("polyline", { class: "second", points: line("by_discovery") }));
  parts.push(draw("polyline", { class: "first", points: line("share") }));
  return draw("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Share of known rank against pages fetched" }, parts);
}

let width = 0;
new ResizeObserver(() => {
  const now = $("harvest-curve").clientWidth;
  if (now !== width) {
    width = now;
    redraw();
  }
}).observe($("harvest-curve"));
