// Seeds come in, and rules are shown and changed.
import { $, button, count, make, many, put } from "./dom.js";
import { change, get, may, tell, trying } from "./api.js";

const lines = (text) => text.split(/\r?\n/).map((one) => one.trim()).filter((one) => one);

export function setUpForms(refresh) {
  if (may("POST/seeds")) $("give-forms").append(seeds(refresh));
  showRules().catch(() => null);
}

function seeds(refresh) {
  const text = make("textarea", { id: "seeds", rows: 4, spellcheck: "false", autocapitalize: "off", placeholder: "https://example.org/" });
  const submit = async (event) => {
    event.preventDefault();
    const urls = text.value.split(/\s+/).filter((one) => one);
    if (!urls.length) return;
    const done = await trying(() => change("POST", "seeds", { urls }));
    if (done === null) return;
    const refused = Object.entries(done.refused).map(([why, number]) => `${count(number)} refused: ${why}`);
    tell([many(done.new, "new page"), ...refused].join("; "), refused.length > 0 && done.new === 0);
    if (!refused.length) text.value = "";
    refresh();
  };
  return make("form", { onsubmit: submit }, make("label", { for: "seeds" }, "Seeds: URLs to begin at, one a line"), text, make("button", {}, "Add seeds"));
}

const FIELDS = [
  ["deny", "No URLs in which one of these is found, one a line (regular expressions; host:NAME)"],
  ["allow", "Only URLs in which one of these is found; empty for all"],
  ["hosts", "Only these hosts; empty for all"],
  ["domains", "Only these domains and the hosts under them; empty for all"],
];

/** The rules in force: to be changed by those who may, else as text. */
async function showRules() {
  const { rules } = await get("settings");
  if (!may("PUT/rules")) {
    const told = FIELDS.flatMap(([name]) => (rules?.[name] ?? []).map((rule) => make("li", { class: "text" }, `${name}: ${rule}`)));
    if (rules?.max_depth != null) told.push(make("li", {}, `at most ${many(rules.max_depth, "link")} from a seed`));
    put($("rules"), make("h3", {}, "Rules for URLs"), told.length ? make("ul", {}, told) : make("p", { class: "note" }, "There are none."));
    return;
  }
  const boxes = FIELDS.map(([name, label]) => {
    const box = make("textarea", { id: `rules-${name}`, rows: Math.min(Math.max((rules?.[name] ?? []).length, 2), 8), spellcheck: "false", autocapitalize: "off" });
    box.value = (rules?.[name] ?? []).join("\n");
    return [name, make("label", { for: box.id }, label), box];
  });
  const depth = make("input", { id: "rules-depth", type: "number", min: 0, step: 1, value: rules?.max_depth ?? "" });
  const submit = async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(boxes.map(([name, , box]) => [name, lines(box.value)]));
    for (const name of ["hosts", "domains"]) if (!given[name].length) given[name] = null;
    given.max_depth = depth.value === "" ? null : Number(depth.value);
    if ((await trying(() => change("PUT", "rules", given))) === null) return;
    tell("The rules hold from now on. Pages that they refuse are excluded when their turn comes.");
    await showRules().catch(() => null);
  };
  put(
    $("rules"),
    make("h3", {}, "Rules for URLs"),
    make(
      "form",
      { onsubmit: submit },
      boxes.map(([, label, box]) => [label, box]).flat(),
      make("label", { for: "rules-depth" }, "Links from a seed at most; empty for no limit"),
      make("div", { class: "line" }, depth, make("button", {}, "Change the rules"), button("Undo", () => showRules().catch(() => null))),
    ),
  );
}
