// Asking the server.
import { $, plain } from "./dom.js";

const main = $("crawl");
export const BASE = main ? main.dataset.base : "";
const CAN = new Set(main ? main.dataset.can.split(" ") : []);

/** Whether one may change something: `POST/pause`, `PUT/hosts/{host}/block`. */
export const may = (what) => CAN.has(what);

/** The path of the first change that one may make whose end is this, or null. */
export const ending = (method, end) => {
  const found = [...CAN].find((one) => one.startsWith(method) && one.endsWith(end));
  return found === undefined ? null : found.slice(method.length);
};

/** What the server says if it refuses. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function answer(response) {
  let data = null;
  try {
    data = await response.json();
  } catch {
    // What is no JSON is told by its status.
  }
  if (response.ok) return data;
  if (response.status === 401) location.assign("/login");
  throw new Refused(response.status, data?.error ?? `the server answered with status ${response.status}`);
}

/** Look: GET with a query. */
export async function get(what, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = given.length ? `?${new URLSearchParams(given)}` : "";
  return answer(await fetch(`${BASE}/${what}${text}`, { credentials: "same-origin" }));
}

/** Send JSON to an absolute path. */
export async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await fetch(path, { method, headers, credentials: "same-origin", body: JSON.stringify(body) }));
}

/** Change something of the crawl. */
export const change = (method, what, body) => send(method, `${BASE}/${what}`, body);

let hide = 0;

/** Say in one line what came of a change. */
export function tell(text, bad = false) {
  const line = $("told");
  line.textContent = plain(text);
  line.classList.toggle("bad", bad);
  line.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => (line.hidden = true), bad ? 20000 : 8000);
}

/** Do something, and tell if it is refused. */
export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    tell(error instanceof Refused ? error.message : "The server did not answer: nothing was changed.", true);
    return null;
  }
}
