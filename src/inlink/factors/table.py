"""The factors of hosts. A new factor is a module beside this one, and an entry in :data:`HOST_FACTORS`."""

from collections.abc import Collection
from typing import Any

from inlink.factors.distrust import HostDistrust
from inlink.factors.host import HostFactor
from inlink.factors.mass import HostMass
from inlink.factors.trust import Trusted
from inlink.store.pages import Pages

HOST_FACTORS: tuple[type[HostFactor], ...] = (HostDistrust, HostMass)
"""All factors of hosts, in the order in which priorities are multiplied by them."""


def factors_given(settings: Any) -> list[str]:
    """Return the names of the settings of factors that are on."""
    return [kind.setting for kind in HOST_FACTORS if getattr(settings, kind.setting)]


def host_factors(pages: Pages, names: Collection[str], trusted: Trusted | None) -> tuple[HostFactor, ...]:
    """Return the factors that settings with these names turn on, as far as the crawl has the data for them.

    Raises
    ------
    inlink.errors.FolderError
        If a list of hosts in the crawl's folder is missing or damaged.
    """
    made = (kind.from_crawl(pages, trusted) for kind in HOST_FACTORS if kind.setting in names)
    return tuple(factor for factor in made if factor is not None)
