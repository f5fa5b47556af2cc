// Hosts with queue, delay, next due and failures, and what an operator may do about them.
import { $, button, count, folded, make, plain, put, time, when } from "./dom.js";
import { change, ending, get, tell, trying } from "./api.js";
import { isUsed } from "./lists.js";

const HEADS = ["host", "wait", "next fetch", "delay", "failures in a row", "handed out", "budget left"];

export async function showHosts(force = false) {
  const box = $("host-list");
  if (!force && isUsed(box)) return;
  const found = await get("hosts", { count: 50, fullest: true });
  if (!force && isUsed(box)) return;
  if (!found.rows.length) {
    put(box, make("p", { class: "note" }, found.known ? "No host has pages that wait." : "No host is known."));
    return;
  }
  const steers = ending("PUT", "/block") !== null;
  put(
    box,
    make("p", {}, found.known > found.rows.length ? `These ${count(found.rows.length)} of ${count(found.known)} hosts have most pages that wait:` : "By the number of pages that wait:"),
    folded(
      found.rows.map((host) => row(host, steers)),
      (rows) =>
        make(
          "table",
          {},
          make("thead", {}, make("tr", {}, HEADS.map((name) => make("th", { scope: "col" }, name)), steers && make("th", { scope: "col" }, "change"))),
          make("tbody", {}, rows),
        ),
    ),
  );
}

function row(host, steers) {
  const cell = (name, text, kind = "number") => make("td", { class: kind, "data-label": name }, text);
  const blocked = host.blocked_for === 0 ? null : make("span", { class: "tag" }, host.blocked_for === null ? "blocked" : `blocked for ${time(host.blocked_for)}`);
  const set = (what) => (host.set_by_operator.includes(what) ? " (set)" : "");
  return make(
    "tr",
    {},
    make("td", { class: "text strong", "data-label": "host" }, host.name, " ", blocked),
    cell("wait", count(host.waiting)),
    cell("next fetch", when(host.due_in)),
    cell("delay", `${time(host.delay)}${set("delay")}`),
    cell("failures in a row", count(host.failures)),
    cell("handed out", count(host.taken)),
    cell("budget left", host.budget_left === null ? "no limit" : `${count(host.budget_left)}${set("budget")}`),
    steers && make("td", { "data-label": "change" }, controls(host)),
  );
}

/** What an operator may do about a host: block it, set its delay, limit its pages. */
export function controls(host) {
  const ask = async (what, body, told) => {
    const path = `hosts/${encodeURIComponent(host.name)}/${what}`;
    const done = await trying(() => change("PUT", path, body));
    if (done === null) return;
    tell(`${host.name}: ${told}`);
    await showHosts(true).catch(() => null);
  };
  const span = make(
    "select",
    { "aria-label": `Block ${plain(host.name)} for` },
    [["600", "10 minutes"], ["3600", "1 hour"], ["86400", "1 day"], ["", "until it is unblocked"]].map(([value, text]) => make("option", { value }, text)),
  );
  const delay = make("input", { type: "number", min: 0, step: "any", value: host.delay, "aria-label": `Seconds between two fetches from ${plain(host.name)}` });
  const budget = make("input", { type: "number", min: 0, step: 1, value: host.budget_left ?? "", "aria-label": `Pages that may still be fetched from ${plain(host.name)}` });
  const line = (...parts) => make("div", { class: "inline" }, parts);
  return make(
    "details",
    { "data-key": `change ${host.name}` },
    make("summary", {}, "change", make("span", { class: "hidden" }, ` ${plain(host.name)}`)),
    host.blocked_for === 0
      ? line(span, button("Block", () => ask("block", { seconds: span.value === "" ? null : Number(span.value) }, "blocked.")))
      : line(button("Unblock", () => ask("block", { seconds: 0 }, "not blocked any more."))),
    line(
      delay,
      button("Set delay", () => delay.value !== "" && ask("delay", { seconds: Number(delay.value) }, `${delay.value} s between two fetches.`)),
      button("As usual", () => ask("delay", { seconds: null }, "the delay is that of the crawl and of robots.txt.")),
    ),
    line(
      budget,
      button("Set budget", () => budget.value !== "" && ask("budget", { pages: Number(budget.value) }, `${budget.value} more pages.`)),
      button("No limit", () => ask("budget", { pages: null }, "no limit.")),
    ),
  );
}
