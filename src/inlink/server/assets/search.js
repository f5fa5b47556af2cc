// Search by URL, or by words of a URL.
import { $, button, count, make, pageLink, plain, placeOf } from "./dom.js";
import { get } from "./api.js";

const ROWS = 30;
let turn = 0;

export function setUpSearch() {
  $("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    search($("words").value.trim());
  });
}

async function search(text) {
  const mine = ++turn;
  if (!text) return;
  const list = make("ul", { class: "rows" });
  const told = make("p", { class: "note" }, "searching …");
  $("found").replaceChildren(list, told);
  try {
    if (/^https?:\/\//i.test(text)) {
      const page = await get("page", { url: text }).catch((error) => {
        if (error.status !== 404 && error.status !== 422) throw error;
        return null;
      });
      if (page !== null) {
        told.textContent = "";
        location.assign(placeOf(page.url));
        return;
      }
    }
    // The longest word is looked for; the others have to stand in the same URL.
    const words = text.toLowerCase().split(/\s+/).sort((one, other) => other.length - one.length);
    await part(mine, words, null, list, told);
  } catch (error) {
    told.textContent = plain(error.message);
  }
}

async function part(mine, words, from, list, told) {
  let cursor = from;
  let rows = 0;
  do {
    const found = await get("find", { expression: words[0], kind: "text", count: ROWS, cursor });
    if (mine !== turn) return;
    for (const row of found.rows) {
      if (!words.every((word) => row.url.toLowerCase().includes(word))) continue;
      list.append(make("li", {}, pageLink(row.url)));
      rows += 1;
    }
    cursor = found.cursor;
    told.textContent = cursor === null ? `${count(list.childNodes.length)} found in ${count(found.known)} URLs.` : `${count(list.childNodes.length)} found in the first ${count(found.searched)} of ${count(found.known)} URLs.`;
  } while (cursor !== null && rows < ROWS);
  if (cursor !== null) {
    const more = button("Search on", async () => {
      more.remove();
      await part(mine, words, cursor, list, told).catch((error) => (told.textContent = plain(error.message)));
    });
    told.after(more);
  }
}
