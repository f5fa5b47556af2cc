// Why a page stands where it stands, in full.
import { amount, count, make, many, pageLink, time, when } from "./dom.js";
import { get } from "./api.js";

const row = (part) =>
  make("tr", {}, make("td", { class: "number" }, `${part.operation} ${amount(part.value)}`), make("td", { class: "text" }, part.name));

const table = (title, parts) =>
  parts.length ? [make("h4", {}, title), make("table", { class: "steps" }, make("tbody", {}, parts.map(row)))] : [];

/** All reasons for the place of a page, as nodes. */
export async function whyOf(url) {
  let why = await get("why", { url });
  for (let more = 0; !why.inlinks_complete && more < 10; more += 1) why = await get("why", { url });
  return shown(why);
}

export function shown(why) {
  const facts = [];
  if (why.refused !== null) facts.push(`Refused: ${why.refused}.`);
  if (why.waits) facts.push(why.place === null ? "It waits, beyond place 100." : `It waits at place ${why.place}.`);
  else facts.push(`It does not wait: ${why.state}.`);
  if (why.lease !== null) facts.push(`Lease ${why.lease} expires in ${time(why.lease_expires_in)}.`);
  if (why.due_in !== null) facts.push(`It is due ${when(why.due_in)}.`);
  if (why.failures) facts.push(`${many(why.failures, "failure")} since the last success.`);
  if (why.losses) facts.push(`Lost ${many(why.losses, "time")}: it is handed out alone.`);
  if (why.near_duplicate_of !== null) facts.push(`It is a near-duplicate of ${why.near_duplicate_of}.`);
  if (why.outdated) facts.push("A new ranking is being adopted: the queue may still use the old priority.");
  return [
    make("p", { class: "text" }, facts.join(" ")),
    ...table(why.priority === null ? `What its priority would be (${why.policy})` : `Priority ${amount(why.priority)} (${why.policy})`, why.parts),
    why.penalties.length ? make("ul", {}, why.penalties.map((one) => make("li", { class: "text" }, `${one.finding} (rule ${one.rule}: × ${amount(one.factor)})`))) : null,
    ...table("Among hosts", why.host_parts),
    why.inlinks.length ? make("h4", {}, why.inlinks_complete ? "The links that give most" : "The links that give most, found so far") : null,
    why.inlinks.length
      ? make("ul", { class: "plain" }, why.inlinks.map((one) => make("li", {}, make("span", { class: "number" }, amount(one.gives)), " ", pageLink(one.url), one.text ? ` “${one.text}”` : "")))
      : null,
    make("h4", {}, "Its host"),
    make("p", { class: "text" }, hostLine(why.host)),
  ].filter((node) => node !== null);
}

/** A host in one line. */
export function hostLine(host) {
  const told = [
    `${host.name}: ${many(host.waiting, "page waits", "pages wait")}, ${many(host.taken, "was", "were")} handed out`,
    `${count(host.in_flight)}${host.in_flight_limit < 2 ** 32 - 1 ? ` of at most ${count(host.in_flight_limit)}` : ""} being fetched`,
    `next fetch ${when(host.due_in)}`,
    `delay ${time(host.delay)}`,
  ];
  if (host.failures) told.push(`${many(host.failures, "failure")} in a row`);
  if (host.budget_left !== null) told.push(`${many(host.budget_left, "page")} left in its budget`);
  if (host.domain_budget_left !== null) told.push(`${count(host.domain_budget_left)} in its domain's`);
  if (host.blocked_for !== 0) told.push(host.blocked_for === null ? "blocked" : `blocked for ${time(host.blocked_for)}`);
  return `${told.join(", ")}.`;
}
