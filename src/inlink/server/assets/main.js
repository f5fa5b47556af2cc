// The dashboard of a crawl.
import { listen } from "./live.js";
import { showStatus } from "./status.js";
import { showWhole } from "./whole.js";
import { showHarvest } from "./harvest.js";
import { showErrors, showOrder, showTop } from "./lists.js";
import { showHosts } from "./hosts.js";
import { setUpCertain, showCertain } from "./certain.js";
import { setUpSearch } from "./search.js";
import { showPage } from "./page.js";
import { setUpForms } from "./give.js";
import "./session.js";

// Seconds after which each part is asked for again while the page is seen.
const PARTS = [
  [showWhole, 2],
  [showHarvest, 5],
  [showErrors, 3],
  [showHosts, 3],
  [showOrder, 3],
  [showTop, 10],
  [showCertain, 2],
];

const due = new Map();
let busy = false;

async function refresh(all = false) {
  if (busy || document.hidden) return;
  busy = true;
  try {
    for (const [show, seconds] of PARTS) {
      if (!all && performance.now() < (due.get(show) ?? 0)) continue;
      due.set(show, performance.now() + 1000 * seconds);
      // A part that cannot be had now is asked for again later; the line above says why.
      await show().catch(() => null);
    }
  } finally {
    busy = false;
  }
}

setUpSearch();
setUpCertain(() => refresh(true));
setUpForms(() => refresh(true));
addEventListener("hashchange", showPage);
showPage();
refresh();
listen(
  (snapshot) => {
    showStatus(snapshot);
    refresh();
  },
  () => refresh(true),
);
