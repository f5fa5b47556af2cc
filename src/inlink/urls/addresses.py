"""Rules for the IP addresses that a crawl may connect to.

An address is *public* if anybody on the internet may own it. All others are listed in the special-purpose registries of
IANA (https://www.iana.org/assignments/iana-ipv4-special-registry/ and ``iana-ipv6-special-registry``), which this
module holds as of 2025: loopback, private, link-local (with the metadata services of clouds), shared (100.64.0.0/10),
unique-local, multicast, unspecified, documentation and reserved addresses.

An IPv6 address may contain an IPv4 address: ``::ffff:10.0.0.1`` (mapped), ``::10.0.0.1`` (compatible),
``64:ff9b::10.0.0.1`` (NAT64) and ``2002:a00:1::`` (6to4). Such an address is refused if either address is refused.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from inlink.errors import ParameterError

NOT_ALLOWED = "address not allowed: "
"""Beginning of the reason for which a page at a forbidden address is excluded. The address follows."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID and others
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)

_COMPATIBLE, _MAPPED = IPv6Network("::/96"), IPv6Network("::ffff:0:0/96")
_NAT64, _6TO4 = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")


class AddressRules:
    """The addresses that a crawl may connect to.

    An address in a network of ``deny`` is refused. Otherwise, an address in a network of ``allow`` is allowed. All
    other addresses are allowed if they are public, or if ``private`` is set.

    Parameters
    ----------
    private : bool
        Allow addresses that are not public.
    allow, deny : iterable of str
        Addresses and networks, such as ``"10.1.0.0/16"`` or ``"fd00::7"``.

    Raises
    ------
    inlink.errors.ParameterError
        If an element of ``allow`` or ``deny`` is neither an address nor a network.

    Examples
    --------
    >>> rules = AddressRules(allow=["10.1.0.0/16"])
    >>> rules.refusal("10.1.2.3"), rules.refusal("10.2.2.3"), rules.refusal("93.184.215.14")
    (None, 'address not allowed: 10.2.2.3', None)
    """

    def __init__(self, *, private: bool = False, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self.private = private
        self.allow = tuple(_network(text, "an allowed address") for text in allow)
        self.deny = tuple(_network(text, "a denied address") for text in deny)

    def __bool__(self) -> bool:
        """Return whether any address is refused."""
        return bool(self.deny) or not self.private

    def refusal(self, address: str) -> str | None:
        """The reason why an address is refused, as one phrase; None if it is allowed.

        Parameters
        ----------
        address : str
            An IP address. Other text is refused.
        """
        whole = parsed(address)
        if whole is None:
            return NOT_ALLOWED + address[:100]
        both = (whole, *_embedded(whole))
        if any(_within(part, self.deny) for part in both):
            return NOT_ALLOWED + address
        if self.private or any(_within(part, self.allow) for part in both):
            return None
        return None if all(_public(part) for part in both) else NOT_ALLOWED + address


def parsed(text: str) -> Address | None:
    """Parse an address, with or without brackets; None if the text is not an address. Drop a zone (``%eth0``)."""
    try:
        return ip_address(text.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return None


def _embedded(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 address within an IPv6 address, if it contains one."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    if address in _6TO4:
        return (IPv4Address(number >> 80 & 0xFFFFFFFF),)
    if address in _MAPPED or address in _NAT64 or address in _COMPATIBLE:
        return (IPv4Address(number & 0xFFFFFFFF),)
    return ()


def _public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not _within(address, _NOT_PUBLIC_4)
    # Only the embedded address counts.
    if address in _MAPPED or address in _NAT64:
        return True
    return address in _GLOBAL_6 and not _within(address, _NOT_PUBLIC_6)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _network(text: str, what: str) -> Network:
    try:
        return ip_network(text.strip().removeprefix("[").removesuffix("]"), strict=False)
    except ValueError:
        raise ParameterError(
            f"{text!r} is not {what}: give an IP address or a network, such as 10.1.0.0/16 or fd00::/8"
        ) from None
