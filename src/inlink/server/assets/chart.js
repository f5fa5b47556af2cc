// A chart of lines with labelled axes.
import { draw } from "./dom.js";

/** Numbers of a round distance, from 0 to `most` or just above it; at most `count` steps. */
export function ticks(most, count = 4) {
  const least = most / count, power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 2.5, 5, 10].find((digit) => digit * power >= least * (1 - 1e-9));
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, k) => k * step);
}

/**
 * Lines over axes that begin and end at their first and last tick. A tick is a value and its label. `lines` has the
 * class and the points of each line, `below` names the axis of x, and `label` says what the chart shows.
 */
export function chart(width, height, { x, y, lines, label, below = null }) {
  const left = 50, right = 12, top = 8, bottom = below ? 38 : 22;
  const [first, last, ceiling] = [x[0][0], x.at(-1)[0], y.at(-1)[0]];
  const across = (value) => left + ((width - left - right) * (value - first)) / (last - first);
  const up = (value) => height - bottom - ((height - top - bottom) * value) / ceiling;
  const text = (at, high, anchor, words) => draw("text", { class: "axis", x: at, y: high, "text-anchor": anchor }, words);
  return draw(
    "svg",
    { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    y.map(([value, words]) => [
      draw("line", { class: "grid", x1: left, x2: width - right, y1: up(value), y2: up(value) }),
      text(left - 6, up(value) + 4, "end", words),
    ]).flat(),
    x.map(([value, words]) => text(across(value), height - bottom + 16, value === last ? "end" : value === first ? "start" : "middle", words)),
    below && text((left + width - right) / 2, height - 6, "middle", below),
    lines.map(([name, points]) =>
      draw("polyline", { class: name, points: points.map(([at, value]) => `${across(at).toFixed(1)},${up(value).toFixed(1)}`).join(" ") }),
    ),
  );
}

/** How a line is drawn, for a legend. */
export const key = (name) =>
  draw("svg", { class: "key wide", viewBox: "0 0 30 10", "aria-hidden": "true" }, draw("polyline", { class: name, points: "0,5 30,5" }));
