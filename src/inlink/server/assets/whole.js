// The shards of the crawl: sums, and a table of their states.
import { $, count, make, many, put, rate, say, share } from "./dom.js";
import { get } from "./api.js";
import { stateOf } from "./status.js";

const HEADS = ["shard", "state", "pages a second", "fetched", "known", "waiting", "server"];

export async function showWhole() {
  if (!$("whole")) return;
  const found = await get("shards");
  const faults = found.shards.map((row) => row.fault).filter(Boolean).join("; ");
  const away = found.count - found.shards.filter((row) => row.snapshot !== null).length;
  say($("whole-fault"), away ? `${many(away, "shard is", "shards are")} missing in these sums, and the rank fetched is not known. ${faults}` : "");
  say($("whole-pages"), rate(found.pages_now));
  say($("whole-errors"), rate(found.errors_now));
  say($("whole-crawled"), count(found.standing.crawled));
  say($("whole-known"), `of ${count(found.standing.known)} known`);
  say($("whole-share"), share(found.standing.harvest));
  put(
    $("whole-table"),
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, HEADS.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, found.shards.map((row) => make("tr", {}, cells(row, found.count)))),
    ),
  );
}

function cells({ number, url, snapshot }, all) {
  const numbers = snapshot === null
    ? ["–", "–", "–", "–"]
    : [rate(snapshot.pages.now), count(snapshot.standing.crawled), count(snapshot.standing.known), count(snapshot.standing.waiting)];
  return [
    make("td", { class: "number strong", "data-label": HEADS[0] }, number === null ? "not known" : `${number} of ${all}`),
    make("td", { class: "text", "data-label": HEADS[1] }, snapshot === null ? make("span", { class: "tag" }, "away") : stateOf(snapshot)),
    ...numbers.map((text, k) => make("td", { class: "number", "data-label": HEADS[k + 2] }, text)),
    make("td", { class: "text", "data-label": HEADS[6] }, url === null ? "this one" : make("a", { href: url.replace("/v1/crawls/", "/crawls/"), class: "text" }, new URL(url).host)),
  ];
}
