// Errors by cause, the next fifty, and the best pages.
import { $, amount, count, draw, folded, make, many, pageLink, plain, put, share, time, when } from "./dom.js";
import { get } from "./api.js";
import { whyOf } from "./why.js";

/** Whether somebody is at work in an element: then it is left as it is. */
export const isUsed = (element) =>
  element.contains(document.activeElement) || element.querySelector("details[open]") !== null;

/** Put nodes into an element as `put` does, but keep what is open, and where somebody is. */
function putKept(element, ...nodes) {
  const open = new Set([...element.querySelectorAll("details[open]")].map((one) => one.dataset.key));
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.closest("details")?.dataset.key;
  const place = focused === null ? -1 : [...(focused.closest("details") ?? element).querySelectorAll("a, button, summary")].indexOf(focused);
  put(element, ...nodes);
  for (const details of element.querySelectorAll("details")) {
    if (open.has(details.dataset.key)) details.open = true;
    if (key !== undefined && details.dataset.key === key && !element.contains(document.activeElement)) {
      details.querySelectorAll("a, button, summary")[place]?.focus({ preventScroll: true });
    }
  }
}

export async function showErrors() {
  const box = $("error-list");
  let found = await get("errors");
  for (let more = 0; found.cursor !== null && more < 40; more += 1) found = await get("errors", { cursor: found.cursor });
  if (!found.causes.length) {
    put(box, make("p", { class: "note" }, found.cursor === null ? "Nothing has failed." : "Nothing found so far."));
    return;
  }
  const most = found.causes[0].count;
  putKept(
    box,
    make("p", {}, many(found.total, "failure or exclusion", "failures and exclusions"), found.cursor !== null && `, in the first ${share(found.searched / found.known)} of the log`, "."),
    make(
      "ul",
      { class: "rows" },
      found.causes.map((cause) =>
        make(
          "li",
          {},
          make(
            "details",
            { "data-key": cause.cause },
            make(
              "summary",
              {},
              make("span", { class: "number" }, count(cause.count)),
              " ",
              make("span", { class: "text strong" }, cause.cause),
              draw("svg", { class: "share", viewBox: "0 0 1000 6", preserveAspectRatio: "none", "aria-hidden": "true" }, draw("rect", { class: "state-failed", width: Math.max((1000 * cause.count) / most, 4).toFixed(1), height: 6 })),
            ),
            make(
              "ul",
              {},
              cause.examples.map((one) =>
                make("li", {}, pageLink(one.url), make("br"), make("span", { class: "note text" }, `${time(one.seconds_ago)} ago${one.status ? `, status ${one.status}` : ""}${one.error ? `: ${one.error}` : ""}`)),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

export async function showOrder() {
  const box = $("order");
  if (isUsed(box)) return;
  const { rows } = await get("next", { count: 50 });
  if (isUsed(box)) return;
  if (!rows.length) {
    put(box, make("p", { class: "note" }, "Nothing waits that may be handed out."));
    return;
  }
  put(box, folded(rows.map(orderRow), places), make("p", { class: "note" }, "This list stands still while a part of it is open."));
}

const places = (rows) => make("ol", { class: "rows places" }, rows);

function orderRow(row) {
  const inside = make("div", { class: "why" });
  const details = make(
    "details",
    {
      ontoggle: async () => {
        if (!details.open || inside.childNodes.length) return;
        inside.replaceChildren(make("p", { class: "note" }, "…"));
        try {
          inside.replaceChildren(...(await whyOf(row.url)));
        } catch (error) {
          inside.replaceChildren(make("p", {}, plain(error.message)));
        }
      },
    },
    make(
      "summary",
      {},
      make("span", { class: "number place" }, row.place),
      " ",
      make("span", { class: "text strong" }, row.url),
      make("span", { class: "note block" }, `${when(row.due_in)} · priority ${amount(row.priority)}`),
    ),
    make("p", {}, pageLink(row.url, "The page with its links")),
    inside,
  );
  return make("li", {}, details);
}

export async function showTop() {
  const box = $("top-list");
  let found;
  try {
    const asked = { count: 25, foreign: false, uncrawled: false };
    found = await get("top", asked);
    for (let more = 0; found.cursor !== null && more < 40; more += 1) found = await get("top", { ...asked, cursor: found.cursor });
  } catch (error) {
    put(box, make("p", { class: "note" }, plain(error.message)));
    return;
  }
  if (isUsed(box)) return;
  put(
    box,
    folded(
      found.rows.map((row) => make("li", {}, make("span", { class: "number place" }, row.place), " ", pageLink(row.url), row.text ? ` “${row.text}”` : "", " ", make("span", { class: "note number" }, amount(row.value)))),
      places,
    ),
    found.cursor !== null && make("p", { class: "note" }, `of the first ${count(found.searched)} of ${count(found.known)} pages`),
  );
}
