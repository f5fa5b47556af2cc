"""The best pages of a ranking that is stored with a crawl, with hub scores and certainty of their places."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from inlink.crawl import shown
from inlink.rank.certain import certain_places

__all__ = ["described"]


def described(part: shown.Top, folder: Path, name: str, best: Sequence[tuple[int, float]]) -> shown.Top:
    """Add hub scores, the algorithm, and the certainty of places to the best pages.

    Parameters
    ----------
    part : Top
        The best pages, as found among all pages.
    folder : Path
    name : str
        Name of the ranking.
    best : sequence of (int, float)
        Pages and values, at least as many as the part has rows. One more shows whether the last place is certain.
    """
    from inlink.sources.rankings import ranking_of

    ranking, _ = ranking_of(folder, name)
    bound = 0.0 if ranking.error_bound is None and ranking.is_exact() else ranking.error_bound
    values = np.array([value for _, value in best])
    return msgspec.structs.replace(
        part,
        certain=None if bound is None else certain_places(values, bound, len(part.rows)).certain.tolist(),
        hubs=[float(ranking.hubs[row.page]) for row in part.rows] if "hubs" in ranking.columns else None,
        algorithm=ranking.algorithm,
    )
