// A page with its links both ways, its path, and its neighbourhood drawn.
import { $, amount, button, count, draw, make, many, pageLink, plain, placeOf, put, time } from "./dom.js";
import { get } from "./api.js";
import { whyOf } from "./why.js";

const PART = 40;
const DRAWN = 8;
let turn = 0;

/** Show the page that the address bar names; nothing if it names none. */
export async function showPage() {
  const mine = ++turn;
  if (!location.hash.startsWith("#page=")) {
    $("page").hidden = true;
    return;
  }
  let url;
  try {
    url = decodeURIComponent(location.hash.slice("#page=".length));
  } catch {
    return;
  }
  const section = $("page");
  section.hidden = false;
  const view = $("page-view");
  try {
    const page = await get("page", { url });
    if (mine !== turn) return;
    const boxes = { from: make("div"), to: make("div"), path: make("div"), why: make("div"), near: make("div", { class: "near" }) };
    view.replaceChildren(
      make("p", { class: "text strong url" }, page.url),
      facts(page),
      boxes.near,
      make("div", { class: "columns" }, make("div", {}, make("h3", {}, "Links to it"), boxes.to), make("div", {}, make("h3", {}, "Links from it"), boxes.from)),
      make("h3", {}, "How the crawl came here"),
      boxes.path,
      make("h3", {}, "Why it stands where it stands"),
      boxes.why,
    );
    section.focus({ preventScroll: true });
    section.scrollIntoView();
    const links = Promise.all([part(mine, url, "to", boxes.to), part(mine, url, "from", boxes.from)]);
    const [to, from] = await links;
    if (mine !== turn) return;
    shown = { page, to, from, box: boxes.near };
    neighbourhood();
    await path(url, boxes.path);
    boxes.why.replaceChildren(...(await whyOf(url)));
  } catch (error) {
    if (mine === turn) view.replaceChildren(make("p", {}, plain(error.message)));
  }
}

function facts(page) {
  const now = Date.now() / 1000;
  const told = [
    ["state", page.state],
    ["status", page.status || "–"],
    ["fetched", page.last_crawl === null ? "never" : `${time(Math.max(now - page.last_crawl, 0))} ago, ${many(page.crawls, "time")}, ${many(page.changes, "change")}`],
    ["score", amount(page.score)],
    ["depth", page.depth],
  ];
  if (page.errors) told.push(["failures", count(page.errors)]);
  if (page.error !== null) told.push(["error", page.error || "not told"]);
  if (page.noindex) told.push(["asks for", "noindex"]);
  const rows = told.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { class: "text" }, value)));
  if (page.merged_into !== null) rows.push(make("div", {}, make("dt", {}, page.merge_reason ? `merged into (${page.merge_reason})` : "merged into"), make("dd", {}, pageLink(page.merged_into))));
  const there = /^https?:\/\//.test(page.url) ? make("a", { href: page.url, rel: "noreferrer noopener", target: "_blank" }, "Open it on the web") : null;
  return make("div", {}, make("dl", { class: "facts" }, rows), there);
}

/** A part of the links of a page, with a button for the next part; returns the rows. */
async function part(mine, url, direction, box, from = null) {
  let found = await get("links", { url, direction, count: PART, cursor: from });
  const rows = [...found.rows];
  for (let more = 0; found.cursor !== null && rows.length < PART && more < 40; more += 1) {
    found = await get("links", { url, direction, count: PART - rows.length, cursor: found.cursor });
    rows.push(...found.rows);
  }
  if (mine !== turn) return rows;
  if (from === null) box.replaceChildren(rows.length || found.cursor !== null ? make("ul", { class: "plain links" }) : make("p", { class: "note" }, "none"));
  const list = box.querySelector("ul");
  list?.append(...rows.map((row) => make("li", {}, pageLink(row.url))));
  if (found.cursor !== null) {
    const more = button("More", async () => {
      more.remove();
      await part(mine, url, direction, box, found.cursor).catch((error) => box.append(plain(error.message)));
    });
    box.append(more);
  }
  return rows;
}

async function path(url, box) {
  const { rows } = await get("path", { url, count: 100 });
  put(box, make("ol", { class: "plain links" }, rows.map((row, k) => make("li", {}, pageLink(row.url), k === rows.length - 1 ? make("span", { class: "note" }, " a seed") : null))));
}

let shown = null;

/** A URL in a few characters: its end says most. */
const brief = (url, most) => {
  const text = plain(url.replace(/^https?:\/\//, ""));
  return text.length <= most ? text : `${text.slice(0, Math.floor(most / 2) - 1)}…${text.slice(-(Math.ceil(most / 2)))}`;
};

/** Draw the page between pages that link to it and pages that it links to. */
function neighbourhood() {
  if (shown === null || !shown.box.isConnected) return;
  const { page, box } = shown;
  const sides = [shown.to.slice(0, DRAWN), shown.from.slice(0, DRAWN)];
  if (!sides[0].length && !sides[1].length) {
    box.replaceChildren();
    return;
  }
  const width = Math.max(280, box.clientWidth);
  const most = Math.max(sides[0].length, sides[1].length);
  const step = 30;
  const height = Math.max(most * step, 60) + 34;
  const middle = { x: width / 2, y: (height - 24) / 2 + 10 };
  const parts = [draw("defs", {}, draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, draw("path", { class: "tip", d: "M0 0L8 4L0 8z" })))];
  sides.forEach((rows, side) => {
    const x = side === 0 ? width * 0.5 - width * 0.16 : width * 0.5 + width * 0.16;
    rows.forEach((row, k) => {
      const y = middle.y + (k - (rows.length - 1) / 2) * step;
      const ends = side === 0 ? [x + 7, y, middle.x - 13, middle.y] : [middle.x + 13, middle.y, x - 8, y];
      const both = sides[1 - side].some((one) => one.page === row.page);
      parts.push(draw("line", { class: both ? "arc both" : "arc", x1: ends[0], y1: ends[1], x2: ends[2], y2: ends[3], "marker-end": "url(#tip)" }));
      parts.push(
        draw(
          "a",
          { href: placeOf(row.url), "aria-label": plain(row.url) },
          draw("title", {}, row.url),
          draw("circle", { class: side === 0 ? "node in" : "node out", cx: x, cy: y, r: 6 }),
          draw("text", { class: "axis", x: side === 0 ? x - 11 : x + 11, y: y + 4, "text-anchor": side === 0 ? "end" : "start" }, brief(row.url, Math.max(8, Math.floor((width * 0.34 - 14) / 6.6)))),
        ),
      );
    });
  });
  parts.push(draw("circle", { class: "node here", cx: middle.x, cy: middle.y, r: 10 }));
  const told = [];
  if (shown.to.length > DRAWN) told.push(`${DRAWN} of the pages that link here`);
  if (shown.from.length > DRAWN) told.push(`${DRAWN} of the pages that it links to`);
  box.replaceChildren(
    draw("svg", { class: "chart", width, height: height - 20, viewBox: `0 0 ${width} ${height - 20}`, role: "group", "aria-label": `Neighbourhood of ${plain(page.url)}` }, parts),
    make("p", { class: "note" }, `Left: pages that link here. Right: pages that it links to. Bold: links both ways.${told.length ? ` Drawn are ${told.join(" and ")}.` : ""}`),
  );
}

let wide = 0;
new ResizeObserver(() => {
  const now = $("page-view").clientWidth;
  if (now !== wide) {
    wide = now;
    neighbourhood();
  }
}).observe($("page-view"));
