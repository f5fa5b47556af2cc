"""Shards of a crawl: which of several servers owns a host.

The registered domains are divided into 4,096 buckets by a hash, and the buckets into equal runs, one for each shard. So
all hosts of a domain have one owner, and with it one politeness and one budget.
"""

import re
from functools import lru_cache
from hashlib import blake2b

import msgspec

from inlink.errors import ParameterError
from inlink.urls.hosts import registered_domain

BUCKETS = 4096
"""Number of buckets, and the largest number of shards."""


class Shard(msgspec.Struct, frozen=True):
    """A shard of a crawl, such as ``2/4``.

    Attributes
    ----------
    number : int
        1 … count.
    count : int
        Number of shards of the crawl.
    """

    number: int
    count: int

    @classmethod
    def from_text(cls, text: str) -> "Shard":
        """Return the shard that a text such as ``2/4`` names.

        Raises
        ------
        inlink.errors.ParameterError
            If the text names no shard.
        """
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII)
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.count <= BUCKETS:
            raise ParameterError(
                f"`shard` must be K/N with K from 1 to N and N at most {BUCKETS:,}, such as 2/4; got {text!r:.100}"
            )
        return shard

    def owns(self, host: str) -> bool:
        """Return whether the shard owns a host."""
        return owner_of(host, self.count) == self.number


@lru_cache(1 << 16)
def owner_of(host: str, count: int) -> int:
    """The number of the shard that owns a host, if there are ``count`` shards.

    Examples
    --------
    >>> owner_of("docs.example.org", 4) == owner_of("www.example.org", 4)
    True
    """
    name = host.removesuffix(".")
    key = (registered_domain(name) or name).encode()
    digest = blake2b(key, digest_size=8, person=b"inlink shard").digest()
    return int.from_bytes(digest, "little") % BUCKETS * count // BUCKETS + 1
