// Seeds and rules come in.
import { $, count, make } from "./dom.js";
import { change, may, tell, trying } from "./api.js";

export function setUpForms(refresh) {
  if (!may("POST/seeds")) return;
  $("give").hidden = false;
  const text = make("textarea", { id: "seeds", rows: 4, spellcheck: "false", autocapitalize: "off", placeholder: "https://example.org/" });
  const form = make(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const urls = text.value.split(/\s+/).filter((one) => one);
        if (!urls.length) return;
        const done = await trying(() => change("POST", "seeds", { urls }));
        if (done === null) return;
        const refused = Object.entries(done.refused).map(([why, number]) => `${count(number)} refused: ${why}`);
        tell([`${count(done.new)} new pages`, ...refused].join("; "), refused.length > 0 && done.new === 0);
        if (!refused.length) text.value = "";
        refresh();
      },
    },
    make("label", { for: "seeds" }, "Seeds: URLs to begin at, one a line"),
    text,
    make("button", {}, "Add seeds"),
  );
  $("give-forms").append(form);
}
