"""Keep a spider from connecting to addresses that are not allowed.

The check is part of each connection. Each address that a name resolves to is checked, and the socket connects to an
address that passed. So a name that resolves to another address the second time (DNS rebinding) cannot avoid the check.
It applies to pages, redirects and robots.txt.

A proxy resolves names itself. Then only an IP address in the URL is checked, and the proxy's own address is not.
"""

import logging
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
from zope.interface import implementer

from inlink.urls.addresses import AddressRules, parsed
from inlink.urls.canonical import canonical

log = logging.getLogger("inlink.addresses")


class AddressNotAllowed(IgnoreRequest):
    """A request would connect to an address that is not allowed; the message is the reason."""


class AddressGuard:
    """Checks the addresses that one spider connects to.

    Parameters
    ----------
    rules : AddressRules
    typed : collection of str
        Hosts of the URLs that the user typed, now or in an earlier run. The addresses that the spider finds at the
        first look-up of such a host are allowed, unless ``rules.deny`` forbids them.
    seen : callable
        Called after the first look-up of such a host, with the host and its address; the address is empty if the host
        needs no permission or gets none.
    """

    def __init__(
        self,
        rules: AddressRules,
        typed: Collection[str] = (),
        seen: Callable[[str, str], None] = lambda host, address: None,
    ) -> None:
        self._rules, self._typed, self._seen = rules, frozenset(typed), seen
        self._unless_denied = AddressRules(private=True)
        self._unless_denied.deny = rules.deny
        self._kept: dict[str, str] = {}
        self._proxy_told = False

    def refusal(self, host: str, address: str) -> str | None:
        """The reason why a host's address is refused; None if it is allowed."""
        reason = self._rules.refusal(address)
        if host not in self._typed:
            return reason
        first = host not in self._kept
        kept = self._kept.setdefault(host, address)
        allowed = reason is not None and kept == address and self._unless_denied.refusal(address) is None
        if first:
            self._seen(host, address if allowed else "")
        return None if allowed else reason

    def process_request(self, request: Request) -> None:
        """Check a request that goes to a proxy; called as a downloader middleware.

        Raises
        ------
        AddressNotAllowed
            If the URL's host is an address that is not allowed.
        """
        if not request.meta.get("proxy"):
            return
        host = urlsplit(canonical(request.url) or "").hostname or ""
        if parsed(host) is not None:
            reason = self.refusal(host, host)
            if reason is not None:
                raise AddressNotAllowed(reason)
        elif not self._proxy_told:
            self._proxy_told = True
            log.warning("a proxy resolves host names, so only IP addresses in URLs are checked")


@implementer(IHostnameResolver)
class Resolver:
    """Looks up one host, and returns only its allowed addresses.

    Parameters
    ----------
    guard : AddressGuard
    host : str
        The host name, in lower case and IDNA.
    below : IHostnameResolver
        The resolver that looks up the host.

    Attributes
    ----------
    refused : str or None
        The reason why an address was refused.
    """

    def __init__(self, guard: AddressGuard, host: str, below: Any) -> None:
        self._guard, self._host, self._below = guard, host, below
        self.refused: str | None = None

    def resolveHostName(  # noqa: N802
        self, receiver: Any, hostName: str, *args: Any, **more: Any
    ) -> Any:
        """Look the host up; see Twisted's IHostnameResolver."""
        if parsed(self._host) is not None and not self._allowed(self._host):
            receiver.resolutionBegan(None)
            receiver.resolutionComplete()
            return None
        return self._below.resolveHostName(_Receiver(receiver, self._allowed), hostName, *args, **more)

    def _allowed(self, address: str) -> bool:
        reason = self._guard.refusal(self._host, address)
        self.refused = self.refused or reason
        return reason is None


@implementer(IResolutionReceiver)
class _Receiver:
    def __init__(self, above: Any, allowed: Callable[[str], bool]) -> None:
        self._above, self._allowed = above, allowed

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802
        self._above.resolutionBegan(resolution)

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        if self._allowed(address.host):
            self._above.addressResolved(address)

    def resolutionComplete(self) -> None:  # noqa: N802
        self._above.resolutionComplete()
