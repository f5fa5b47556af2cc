// The harvest curve: the fetched share of the rank of the pages that may be fetched, against pages fetched.
import { $, count, make, many, put, share } from "./dom.js";
import { get } from "./api.js";
import { chart, key, ticks } from "./chart.js";

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
      `${many(last.fetched, "fetched page")} of ${count(shown.known)} known pages: ${share(last.share)} of the rank of all that may be fetched. `,
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
  const wide = Math.max(280, $("harvest-curve").clientWidth);
  const most = points.at(-1).fetched;
  const highest = Math.max(0.01, ...points.map((one) => Math.max(one.share, one.by_discovery)));
  const line = (field) => [[0, 0], ...points.map((one) => [one.fetched, one[field]])];
  return chart(wide, Math.min(300, Math.round(wide / 2)), {
    x: [0, 0.25, 0.5, 0.75, 1].map((part) => [part * most, short(Math.round(part * most))]),
    y: ticks(highest).map((value) => [value, `${+(100 * value).toFixed(2)} %`]),
    lines: [["second", line("by_discovery")], ["first", line("share")]],
    label: "Share of the rank of the pages that may be fetched, against pages fetched",
    below: "pages fetched",
  });
}

let width = 0;
new ResizeObserver(() => {
  const now = $("harvest-curve").clientWidth;
  if (now !== width) {
    width = now;
    redraw();
  }
}).observe($("harvest-curve"));
