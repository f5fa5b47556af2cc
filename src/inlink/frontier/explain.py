"""The reasons for a page's place in the order."""

import msgspec

from inlink.base.table import counted
from inlink.factors.parts import NOT_REACHED, Part
from inlink.frontier.byvalue import PageValue
from inlink.frontier.frontier import Frontier
from inlink.frontier.hosts import HostState
from inlink.frontier.traps import FACTORS
from inlink.frontier.traps import explain as explain_traps
from inlink.store.format import DISCOVERED, EXCLUDED, NO_LIMIT, STATES
from inlink.store.page import merge_reason

FARTHEST_PLACE = 100
"""The last place in the order that is searched for a page."""


class Penalty(msgspec.Struct, frozen=True):
    """A trap rule that lowers a page's priority: its name, its finding in the URL, and its factor."""

    rule: str
    finding: str
    factor: float


class Inlink(msgspec.Struct, frozen=True):
    """A page that links to the page, and the amount that its link adds to the page's priority before penalties.

    ``text`` is the text of the link, empty if it is not known.
    """

    page: int
    url: str
    gives: float
    text: str = ""


class Why(msgspec.Struct, frozen=True):
    """A page's place in the order, and all reasons for it.

    Parameters
    ----------
    url : str
    page : int
        Its number in the order of discovery.
    state : str
    waits : bool
        Whether the page is in the queue.
    place : int or None
        1 for the next page. None if the page does not wait or its place is beyond 100.
    policy : str
    priority : float or None
        The page's priority in the queue; None if it does not wait.
    parts : list of Part
        Combined from left to right, they give the priority by the policy's present state, penalties included.
    outdated : bool
        Whether a new ranking is being adopted and the queue may still hold the page's old priority.
    host_parts : list of Part
        Combined from left to right, starting with the priority, they give the number by which hosts compete.
    penalties : list of Penalty
        The components of the trap penalty among the parts.
    score : float
        Content score of a crawled page; else the best score of a link to the page.
    depth : int
        Number of clicks from a seed on the way by which the page was found.
    host : HostState
    lease : int or None
        Number of the page's open lease.
    lease_expires_in : float or None
        Seconds until that lease expires.
    due_in : float or None
        Seconds until the page is tried or crawled again, if that is planned.
    losses : int
        Number of lost leases of the page since its last answer. A lost page waits outside the queue until ``due_in``
        has passed, and is then handed out alone.
    failures : int
        Number of failures since the last success.
    merged_into : str or None
        URL of the page that it was merged into.
    merge_reason : str or None
        Why it was merged: ``"redirect"``, ``"refresh"``, ``"canonical"``, or None if the log does not say.
    merge_status : int
        HTTP status of the answer that led to the merge, 0 if it is not known.
    canonical : str or None
        URL of another page that its latest visit names as its canonical page.
    separate : str or None
        The reason why it is not merged into its canonical page.
    inlinks : list of Inlink
        The links that add most to the priority, best first. Empty if links do not count under this policy.
    inlinks_complete : bool
        Whether all visits were searched for links to the page, and for near-duplicates. If not, the next call goes on
        searching.
    refused : str or None
        The rule of the crawl that refuses the page, or the reason for which an operator excluded it. A waiting page
        that a rule refuses is excluded when its turn comes.
    never_due : bool
        Whether the page's due date was set to never: see :meth:`inlink.Crawl.set_due`.
    near_duplicate_of : str or None
        URL of the page that was first crawled before this page and has nearly the same text: see
        :mod:`inlink.store.near`.
    value : PageValue or None
        The reasons for the date of its revisit, if revisits are by value.
    revisit_rule : str or None
        The rule that fixes or bounds the interval until its next crawl.
    """

    url: str
    page: int
    state: str
    waits: bool
    place: int | None
    policy: str
    priority: float | None
    parts: list[Part]
    outdated: bool
    host_parts: list[Part]
    penalties: list[Penalty]
    score: float
    depth: int
    host: HostState
    lease: int | None
    lease_expires_in: float | None
    due_in: float | None
    failures: int
    merged_into: str | None
    inlinks: list[Inlink]
    inlinks_complete: bool
    losses: int = 0
    refused: str | None = None
    never_due: bool = False
    near_duplicate_of: str | None = None
    merge_reason: str | None = None
    merge_status: int = 0
    canonical: str | None = None
    separate: str | None = None
    value: PageValue | None = None
    revisit_rule: str | None = None

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(f"  {line}" for line in self._lines())])

    def _headline(self) -> str:
        if self.refused is not None:
            when = "" if self.state == "excluded" else ", will be excluded when its turn comes"
            return f"{self.url}: {self.state}{when}, {self.refused}"
        if self.losses and self.lease is None and self.due_in is not None:
            return f"{self.url}: {self.state}, waiting to be handed out alone"
        if not self.waits:
            return f"{self.url}: {self.state}, not waiting"
        if self.place is None:
            return f"{self.url}: {self.state}, waiting beyond place {FARTHEST_PLACE}"
        return f"{self.url}: {self.state}, waiting at place {self.place}"

    def _lines(self) -> list[str]:
        reached = f" ({NOT_REACHED})" if any(part.name == NOT_REACHED for part in self.parts) else ""
        if self.priority is None:
            lines = [f"by policy {self.policy} its priority would be:"]
        else:
            lines = [f"priority {self.priority:.6g}{reached} by policy {self.policy}:"]
        lines += [f"  {part.operation} {part.value:.6g}  {part.name}" for part in self.parts]
        lines += [
            f"      {penalty.finding} (rule {penalty.rule!r}: × {penalty.factor:.3g})"
            for penalty in self.penalties
        ]
        if self.outdated:
            lines.append("a new ranking is being adopted: the queue may still use the old priority")
        if self.host_parts:
            lines.append("among hosts:")
            lines += [f"  {part.operation} {part.value:.6g}  {part.name}" for part in self.host_parts]
        if self.inlinks:
            lines.append("best inlinks" + (":" if self.inlinks_complete else " found so far:"))
            lines += [
                f"  {inlink.gives:.6g}  {inlink.url}" + (f'  "{inlink.text}"' if inlink.text else "")
                for inlink in self.inlinks
            ]
        lines.append(f"score {self.score:.6g}, depth {self.depth}")
        host = self.host
        limit = "" if host.in_flight_limit == NO_LIMIT else f" of at most {host.in_flight_limit:,}"
        lines.append(
            f"host {host.name}: {counted(host.waiting, 'page')} waiting, {host.taken:,} taken, "
            f"{host.in_flight}{limit} being fetched, " + _when(host)
        )
        if host.set_by_operator:
            lines.append(f"host {host.name}: {', '.join(host.set_by_operator)} set by an operator")
        if host.failures:
            lines.append(f"host {host.name} failed {counted(host.failures, 'time')} in a row")
        for name, left in (("host", host.budget_left), ("domain", host.domain_budget_left)):
            if left is not None:
                lines.append(f"{name} budget: {counted(left, 'page')} left")
        if self.lease is not None:
            lines.append(f"lease {self.lease} expires in {self.lease_expires_in or 0.0:.1f} s")
        if self.losses:
            lines.append(f"lost {counted(self.losses, 'time')}: its spider ended, or did not answer in time")
        if self.due_in is not None:
            again = "handed out" if self.losses else "tried" if self.failures else "crawled"
            lines.append(f"{again} again in {self.due_in:.1f} s")
        if self.value is not None:
            lines.append(f"revisit by value: {self.value}")
        if self.revisit_rule is not None:
            lines.append(f"revisit rule {self.revisit_rule}")
        if self.never_due:
            lines.append("never due again: its due date was set to never")
        if self.failures:
            lines.append(f"failures since the last success: {self.failures}")
        if self.merged_into is not None:
            because = " ".join(filter(None, (self.merge_reason, str(self.merge_status or ""))))
            lines.append(f"merged into {self.merged_into}" + (f" ({because})" if because else ""))
        elif self.canonical is not None:
            because = f" (not merged: {self.separate})" if self.separate else ""
            lines.append(f"names {self.canonical} as its canonical page{because}")
        if self.near_duplicate_of is not None:
            lines.append(f"near-duplicate of {self.near_duplicate_of}")
        return lines


def _when(host: HostState) -> str:
    """The time of the next fetch from a host, in words."""
    if host.due_in is None:
        return "blocked by an operator"
    blocked = (
        ", blocked by an operator until then" if host.blocked_for and host.due_in == host.blocked_for else ""
    )
    return f"next fetch in {host.due_in:.1f} s{blocked}" if host.due_in else "may be asked now"


def page_parts(frontier: Frontier, page: int) -> list[Part]:
    """The parts of a page's own priority: those of the policy, and the trap penalty if there is one."""
    parts = frontier.policy.explain(page)
    if frontier.copies is not None:
        parts = [*parts, *frontier.copies.explain(page)]
    code = frontier.traps[page]
    return [*parts, Part("trap penalty", "×", float(FACTORS[code]))] if code else parts


def host_parts(frontier: Frontier, page: int, before: int = 0) -> list[Part]:
    """The parts by which a page's priority is changed before it is compared with pages of other hosts.

    Parameters
    ----------
    frontier : Frontier
    page : int
    before : int
        Number of waiting pages of the same host that come before it.
    """
    slot = frontier.queue.slot(page)
    failures, parts = frontier.hosts.failures.get(slot, 0), []
    if failures:
        parts.append(Part("1 + failures of the host in a row", "÷", 1.0 + failures))
    if frontier.policy.sharing == "shared":
        taken = float(frontier.queue.rows[slot]["taken"]) + before
        parts.append(Part("1 + pages taken from the host", "÷", 1.0 + taken))
    return parts


def explain(
    frontier: Frontier,
    page: int,
    now: float,
    inlinks: list[Inlink] | None = None,
    complete: bool = False,
    original: int | None = None,
) -> Why:
    """Return all reasons for a page's place.

    Parameters
    ----------
    frontier : Frontier
    page : int
    now : float
        Unix time.
    inlinks : list of Inlink or None
        The links that add most to the page's priority, found by :mod:`inlink.frontier.inlinks`.
    complete : bool
        Whether all visits were searched for them, and for near-duplicates.
    original : int or None
        The page that it is a near-duplicate of.
    """
    pages, queue, policy = frontier.pages, frontier.queue, frontier.policy
    url, slot = pages.url(page), queue.slot(page)
    waits = page in queue
    penalties = [Penalty(*rule) for rule in explain_traps(url, frontier.year)] if frontier.traps[page] else []
    place = None
    if waits:
        order = [row[0] for row in frontier.order(FARTHEST_PLACE, now)]
        place = order.index(page) + 1 if page in order else None
    lease = frontier.leases.current(page)
    due = frontier.plans.get(page, frontier.lost.dates.get(page))
    never = page in frontier.never
    merge, canonical = pages.merge_of(page), pages.canonicals.get(page)
    return Why(
        url=url,
        page=page,
        state=STATES[pages.states[page]],
        waits=waits,
        place=place,
        policy=policy.name,
        priority=queue.key(page) if waits else None,
        parts=page_parts(frontier, page),
        outdated=queue.rekeying,
        host_parts=host_parts(frontier, page),
        penalties=penalties,
        score=float(pages.scores[page]),
        depth=int(pages.depths[page]),
        host=frontier.hosts.state(slot, now),
        lease=None if lease is None else lease.number,
        lease_expires_in=None if lease is None else max(lease.expires - now, 0.0),
        due_in=None if due is None else max(due - now, 0.0),
        failures=int(pages.errors[page]),
        merged_into=pages.url(pages.survivor(page)) if page in pages.merged else None,
        inlinks=inlinks or [],
        inlinks_complete=complete,
        losses=int(pages.losses[page]),
        never_due=never,
        refused=_refused(frontier, page, waits),
        near_duplicate_of=None if original is None else pages.url(original),
        merge_reason=None if merge is None else merge_reason(merge),
        merge_status=0 if merge is None else merge.status,
        canonical=None if canonical is None else pages.url(canonical),
        separate=None if canonical is None or merge is not None else pages.why_separate(page),
        value=None if frontier.values is None else frontier.values.explain(page, now),
        revisit_rule=str(frontier.revisit_rules.of(url)) if frontier.revisit_rules.place(url) else None,
    )


def _refused(frontier: Frontier, page: int, waits: bool) -> str | None:
    """The reason why a page is excluded, or will be excluded when its turn comes."""
    state = frontier.pages.states[page]
    if state not in (DISCOVERED, EXCLUDED) and not waits:
        return None
    return frontier.refused(page) or (frontier.pages.exclusion_of(page) if state == EXCLUDED else None)
