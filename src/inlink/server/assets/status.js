// Is it running, how fast, and how close to the end.
import { $, button, count, draw, make, many, put, rate, say, share, time } from "./dom.js";
import { change, may, tell, trying } from "./api.js";
import { chart, key, ticks } from "./chart.js";

const PAST = 120;
const past = [];

const STATES = ["crawled", "leased", "failed", "gone", "excluded", "merged", "discovered"];
const WORDS = {
  crawled: "fetched without error",
  leased: "being fetched",
  failed: "failed",
  gone: "gone",
  excluded: "excluded",
  merged: "merged",
  discovered: "not yet fetched",
};

/** In one or two words, what the crawl does. */
export function stateOf({ standing, activity, pages }) {
  if (activity.paused) return "paused";
  if (standing.waiting + standing.planned + standing.leased === 0) return "at its end";
  if (standing.leased > 0 || pages.now > 0) return "running";
  if (activity.num_sessions === 0) return "no spider is here";
  return standing.waiting === 0 ? "waiting for later pages" : "waiting";
}

export function showStatus(snapshot) {
  const { standing, activity, pages, errors } = snapshot;
  say($("fault"), snapshot.fault ?? "");
  if (snapshot.fault !== null) {
    say($("state"), "not available");
    return;
  }
  const state = stateOf(snapshot);
  say($("state"), state);
  $("state").dataset.state = state;
  say($("pages-now"), rate(pages.now));
  say($("pages-mean"), `${rate(pages.mean)} since the start, ${time(snapshot.seconds)} ago`);
  say($("errors-now"), errors.now === null ? "–" : errors.now.toFixed(errors.now < 1 ? 2 : 1));
  say($("errors-mean"), `${errors.mean.toFixed(2)} since the start, ${count(errors.total)} in all`);
  say($("crawled"), count(standing.crawled));
  say($("known"), `of ${count(standing.known)} known`);
  say($("share"), share(standing.harvest));
  say($("ranking"), activity.ranking ? "a ranking is under way" : "of the pages that may be fetched");
  put($("end"), end(standing));
  put($("sessions"), sessions(activity));
  steer(activity);
  past.push([pages.now, errors.now]);
  if (past.length > PAST) past.shift();
  put($("trend"), trend());
}

/** A bar of all known pages by state, with the numbers below. */
function end(standing) {
  const known = Math.max(standing.known, 1);
  const rows = STATES.map((state) => [state, standing.states[state] ?? 0]).filter(([, number]) => number);
  let at = 0;
  const bars = rows.map(([state, number]) => {
    const begin = at;
    at += (1000 * number) / known;
    return draw("rect", { class: `state-${state}`, x: begin.toFixed(2), y: 0, width: Math.max(at - begin - 2, 1).toFixed(2), height: 14 });
  });
  const over = known - (standing.states.discovered ?? 0) - (standing.states.leased ?? 0);
  const left = [`${count(standing.waiting)} waiting`];
  if (standing.planned) left.push(`${count(standing.planned)} waiting for a later time`);
  if (standing.leased) left.push(`${count(standing.leased)} being fetched`);
  return [
    make("p", {}, `${share(over / known)} of the known pages are done; ${left.join(", ")}.`),
    draw("svg", { class: "bar", viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": "true" }, bars),
    make(
      "ul",
      { class: "legend" },
      rows.map(([state, number]) =>
        make("li", {}, draw("svg", { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("rect", { class: `state-${state}`, width: 10, height: 10 })), `${count(number)} ${WORDS[state]}`),
      ),
    ),
  ];
}

/** Pages and errors a second in the last two minutes. */
function trend() {
  if (past.length < 3) return [];
  const most = Math.max(1, ...past.flat());
  const line = (which) => past.map((values, k) => [k + 1 - past.length, values[which]]).filter(([, value]) => value !== null);
  return [
    chart(Math.max(280, $("trend").clientWidth), 130, {
      x: [[1 - PAST, "2 min ago"], [(1 - PAST) / 2, "1 min ago"], [0, "now"]],
      y: ticks(most, 3).map((value) => [value, +value.toPrecision(6)]),
      lines: [["first", line(0)], ["second", line(1)]],
      label: "Pages and errors a second in the last two minutes",
    }),
    make("ul", { class: "legend" }, make("li", {}, key("first"), "pages a second"), make("li", {}, key("second"), "errors a second")),
  ];
}

function sessions(activity) {
  if (!activity.sessions.length) return make("p", { class: "note" }, "No spider has a session.");
  // In an order that stays: the server tells of those first that it heard of last.
  const order = [...activity.sessions].sort((one, other) => one.owner.localeCompare(other.owner) || one.session - other.session);
  const rows = order.map((one) =>
    make(
      "tr",
      {},
      make("td", { class: "text strong", "data-label": "owner" }, one.owner),
      make("td", { class: "number", "data-label": "tasks" }, count(one.tasks)),
      make("td", { class: "number", "data-label": "silent for" }, time(Math.floor(one.silent_for))),
      make("td", { class: "number", "data-label": "ends after" }, one.silent_after === null ? "never" : time(one.silent_after)),
    ),
  );
  const more = activity.num_sessions - rows.length;
  return [
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ["owner", "tasks", "silent for", "ends after silence of"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, rows),
    ),
    more > 0 && make("p", { class: "note" }, `and ${count(more)} more`),
  ];
}

let paused = null;

function steer(activity) {
  if (paused === activity.paused || !may("POST/pause")) return;
  paused = activity.paused;
  const ask = (what, told, body) => async () => {
    const done = await trying(() => change("POST", what, body));
    if (done !== null) tell(told(done));
  };
  $("steer").replaceChildren(
    paused
      ? button("Resume", ask("resume", () => "The crawl goes on."), { class: "main" })
      : button("Pause", ask("pause", () => "The crawl is paused: nothing is handed out, answers are taken in.")),
    button("Rank anew", ask("rerank", () => "A new ranking is asked for.")),
    button("Try failed pages again", async () => {
      if (!confirm("Let all pages that failed wait again?")) return;
      await ask("reload", ({ count: number }) => `${many(number, "page waits", "pages wait")} again.`, {})();
    }),
  );
}
