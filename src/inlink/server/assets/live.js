// What the server tells once a second. It says when the server is away, and comes back by itself.
import { $ } from "./dom.js";
import { BASE, get } from "./api.js";

// Seconds without a word after which the server is away, and after which to try again.
const SILENT = 8;
const AGAIN = 2;

let source = null;
let heard = performance.now();

/** Call `show` with each snapshot, and `back` when the server is there again. */
export function listen(show, back) {
  const away = (text) => {
    if ($("away").hidden) {
      $("away").textContent = text;
      $("away").hidden = false;
    }
  };
  const open = () => {
    source?.close();
    source = new EventSource(`${BASE}/events`);
    source.onmessage = (event) => {
      heard = performance.now();
      const was = !$("away").hidden;
      $("away").hidden = true;
      show(JSON.parse(event.data));
      if (was) back();
    };
    source.onerror = () => {
      away("The server is away. This page shows what was last known, and goes on when the server is back.");
      if (source.readyState !== EventSource.CLOSED) return;
      // It was refused: by the end of a login, or because too many listen. The reply tells.
      get("standing", { hosts: 0 }).catch(() => null);
      setTimeout(open, 1000 * AGAIN);
    };
  };
  setInterval(() => {
    if (performance.now() - heard > 1000 * SILENT && source.readyState === EventSource.OPEN) {
      away("The server is silent. This page shows what was last known.");
      heard = performance.now();
      open();
    }
  }, 1000);
  open();
}
