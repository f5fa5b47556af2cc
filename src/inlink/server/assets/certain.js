// The places that no page that is still unknown can change. The server computes them only while this part is open.
import { $, count, make, many, pageLink, put } from "./dom.js";
import { get } from "./api.js";

const small = (number) => (number === 0 ? "0" : number < 0.001 ? number.toExponential(2) : number.toPrecision(3));

export async function showCertain() {
  const box = $("certain-list");
  if (!$("certain-box")?.open || !$("certain-form").checkValidity()) return;
  const asked = { hosts: 0, top: $("certain-top").value, within: $("certain-within").value };
  const { certificate: found } = await get("standing", asked);
  if (!found) {
    put(box, make("p", { class: "note" }, "The bounds are being computed. They need a seed, and the links of fetched pages."));
    return;
  }
  const sure = found.places.filter((row) => row.certain).length;
  const target = found.trusted ? "trusted page" : "seed";
  const said = found.places.length === 1
    ? `The first place is ${sure ? "" : "not "}certain`
    : `${count(sure)} of the first ${count(found.places.length)} places are certain`;
  put(
    box,
    make("p", {}, `${said} within ${found.within} of all rank. `,
      `At most ${small(found.outside)} of all rank is outside of ${many(found.fetched, "fetched page")}.`),
    make("p", { class: "note" }, `The rank is PageRank with teleports to the ${found.targets === 1 ? `only ${target}` : many(found.targets, target)}. With uniform teleports there is no bound. `,
      `Assumptions: fetched pages keep their links, pages that failed or were excluded have none, and no ${target} is added.`),
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ["place", "at least", "at most", "page", ""].map((name) => make("th", { scope: "col" }, name)))),
      make(
        "tbody",
        {},
        found.places.map((row) =>
          make(
            "tr",
            {},
            make("td", { class: "number", "data-label": "place" }, count(row.place)),
            make("td", { class: "number", "data-label": "at least" }, small(row.lower)),
            make("td", { class: "number", "data-label": "at most" }, small(row.upper)),
            make("td", { class: "text", "data-label": "page" }, pageLink(row.url)),
            make("td", { "data-label": "" }, row.certain ? "certain" : "open"),
          ),
        ),
      ),
    ),
  );
}

export function setUpCertain(again) {
  // A shard has no certain places.
  if (!$("certain-box")) return;
  $("certain-form").addEventListener("submit", (event) => event.preventDefault());
  for (const [id, kind] of [["certain-box", "toggle"], ["certain-top", "change"], ["certain-within", "change"]]) {
    $(id).addEventListener(kind, again);
  }
}
