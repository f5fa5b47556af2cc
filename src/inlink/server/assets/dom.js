// Making elements. All text goes through `textContent`, so nothing that a crawl contains becomes markup.

// Control characters, and those that turn the direction of text around.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs}/gu;

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

/** Text without characters that nobody sees; � stands for them. */
export const plain = (text) => String(text).replace(HIDDEN, "\ufffd");

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return element;
}

/** An element with attributes (`onclick` adds a listener) and children: nodes, or texts. */
export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Put nodes into an element, in place of what it has; only if it would look different. */
export function put(element, ...nodes) {
  const fresh = nodes.flat().filter((node) => node !== null && node !== false);
  const old = [...element.childNodes];
  if (old.length === fresh.length && old.every((node, k) => node.isEqualNode(fresh[k]))) return;
  element.replaceChildren(...fresh);
}

/** Set the text of an element, only if it differs: a screen reader says what changes. */
export function say(element, text) {
  const told = plain(text);
  if (element.textContent !== told) element.textContent = told;
}

export const count = (number) => number.toLocaleString("en");

/** A number of things: `many(2, "page")` is "2 pages". */
export const many = (number, thing, things = `${thing}s`) => `${count(number)} ${number === 1 ? thing : things}`;

export const amount = (number) => Number(number.toPrecision(4)).toString();

export const rate = (number) => (number === null ? "–" : number.toFixed(number < 10 ? 1 : 0));

export const share = (number) => (number === null ? "–" : `${(100 * number).toFixed(1)} %`);

/** Seconds in words. */
export function time(seconds) {
  if (seconds < 1) return seconds > 0 ? "under 1 s" : "0 s";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 1.5 * size) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

/** When something is due: seconds from now; null is never. */
export const when = (seconds) => (seconds === null ? "never" : seconds > 0 ? `in ${time(seconds)}` : "now");

/** The place in the address bar of a page of the crawl. */
export const placeOf = (url) => `#page=${encodeURIComponent(url)}`;

/** A link to a page of the crawl, as this dashboard shows it. */
export const pageLink = (url, text = url) => make("a", { href: placeOf(url), class: "text" }, text);

/** The first ten rows in an element, and the others in one below a line that unfolds them. */
export const folded = (rows, wrap) => [
  wrap(rows.slice(0, 10)),
  rows.length > 10 && make("details", { "data-key": "more" }, make("summary", {}, `${count(rows.length - 10)} more`), wrap(rows.slice(10))),
];

/** A button. */
export const button = (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text);
