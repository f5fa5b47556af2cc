import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlmodel import Model, exact_pagerank
from inlink.errors import DamageError, ParameterError
from inlink.reranking import live as module
from inlink.reranking.kernels import push as kernels
from inlink.reranking.live import GrowingHits, GrowingPageRank
from inlink.store.format import HEAD, HEAD_SIZE, LEASE
from inlink.store.kernels.sound import row_sound


def teleport(model: Model, scores, least: float = 1e-6) -> np.ndarray:
    if scores is None:
        return np.ones(model.num_pages)
    known = np.where(np.isfinite(scores), scores, 0).astype(float)
    return np.where(known >= 0, known + least, least / (1 - np.minimum(known, 0)))


def check_pagerank(kept: GrowingPageRank, update, model: Model, scores=None, hosts=None) -> None:
    exact = exact_pagerank(model.arcs(hosts), teleport(model, scores), kept.damping)
    assert update.converged
    assert update.error <= kept.tol
    assert np.abs(kept.values - exact).sum() <= (update.error + 1e-13) * np.abs(exact).sum()
    assert kept.num_links == model.arcs(hosts).sum()


@st.composite
def growing(draw: st.DrawFn, most: int = 12):
    """The models after each step of a growing crawl, re-crawls, merges and pages that lose their visit among them."""
    model, models = Model(), []
    for _ in range(draw(st.integers(1, 4))):
        model.num_pages = draw(st.integers(model.num_pages, most))
        if model.num_pages:
            page = st.integers(0, model.num_pages - 1)
            for _ in range(draw(st.integers(0, 6))):
                what = draw(st.sampled_from(["crawl"] * 8 + ["merge", "lose"]))
                one = draw(page)
                if what == "crawl":
                    model.crawl(one, draw(st.lists(page, max_size=6)), draw(st.binary(max_size=3)))
                elif what == "merge":
                    model.merge(one, draw(page))
                elif one in model.rows:
                    del model.rows[one], model.places[one]
        models.append(
            Model(model.num_pages, dict(model.rows), dict(model.places), model.log, set(model.merged))
        )
    return models


score = st.one_of(st.floats(0, 10, width=32), st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e30]))


def scores_of(data, model: Model, values=score):
    if data.draw(st.booleans()):
        return None
    listed = st.lists(values, min_size=model.num_pages, max_size=model.num_pages)
    return np.array(data.draw(listed), np.float32)


@given(growing(), st.data(), st.sampled_from([1e-2, 1e-4, 1e-9]), st.sampled_from([0.3, 0.85, 0.99]))
def test_pagerank_is_within_its_bound_after_every_update(models, data, tol, damping):
    across = data.draw(st.booleans())
    all_hosts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=12)), np.uint32)
    kept = GrowingPageRank(damping, tol)
    for model in models:
        scores = scores_of(data, model)
        hosts = all_hosts[: model.num_pages] if across else None
        update = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        check_pagerank(kept, update, model, scores, hosts)
        again = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        assert again.sweeps == 0, "nothing is new, so nothing is to be pushed"


@given(growing(), st.lists(st.one_of(st.floats(-10, 10), st.just(np.nan)), max_size=16))
def test_pagerank_may_start_from_anything(models, start):
    kept = GrowingPageRank(tol=1e-9, start=start)
    for model in models:
        check_pagerank(kept, kept.update(*model.given()), model)


def test_a_good_start_saves_the_work():
    model = random_crawl(400, 6)
    first = GrowingPageRank(tol=1e-6, start=[1e300, -np.inf])  # beyond all measure: as if it were not there
    cold = first.update(*model.given())
    warm = GrowingPageRank(tol=1e-6, start=first.values.astype(np.float32)).update(*model.given())
    assert warm.sweeps < 0.2 * cold.sweeps


def random_crawl(pages: int, links: int, seed: int = 0) -> Model:
    random = np.random.default_rng(seed)
    model = Model(pages)
    for page in random.permutation(pages)[: pages * 3 // 4]:
        model.crawl(
            int(page), (random.integers(0, pages, random.integers(0, 2 * links + 1))).tolist(), b"12345678"
        )
    return model


@pytest.mark.slow
def test_many_updates_do_not_wear_the_bound_out(monkeypatch):
    monkeypatch.setattr(
        module, "SLICE", 7
    )  # rows in many slices: each is pushed once a sweep, none is left out
    random = np.random.default_rng(5)
    model = random_crawl(60, 4)
    kept = GrowingPageRank(tol=1e-9)
    for _ in range(300):
        page = int(random.integers(0, model.num_pages))
        model.num_pages += int(random.integers(0, 2))
        model.crawl(page, random.integers(0, model.num_pages, random.integers(0, 9)).tolist())
        update = kept.update(*model.given())
    exact = exact_pagerank(model.arcs(), np.ones(model.num_pages), 0.85)
    assert update.converged
    assert np.abs(kept.values - exact).sum() <= update.error * exact.sum()


def test_a_small_change_costs_little():
    model = random_crawl(3000, 8)
    kept = GrowingPageRank()
    cold = kept.update(*model.given())
    model.num_pages += 1
    model.crawl(model.num_pages - 1, [5, 6, 7])
    small = kept.update(*model.given())
    assert cold.sweeps > 3
    assert 0 < small.sweeps < 0.1 * cold.sweeps


def test_scores_beyond_all_measure_leave_no_trace():
    model = random_crawl(50, 3)
    kept = GrowingPageRank(tol=1e-8)
    scores = np.ones(50, np.float32)
    scores[7] = 1e35
    check_pagerank(kept, kept.update(*model.given(), scores), model, scores)
    update = kept.update(*model.given())
    check_pagerank(kept, update, model)
    assert update.sweeps > 1, "what is left of them is rounding, which no residual tells of"


def test_scores_may_change_where_they_stand():
    model = random_crawl(50, 3)
    kept = GrowingPageRank(tol=1e-8)
    scores = np.ones(50, np.float32)
    kept.update(*model.given(), scores)
    scores[7] = 9
    check_pagerank(kept, kept.update(*model.given(), scores), model, scores)


def test_a_page_that_links_to_itself_alone_is_solved_at_once():
    model = Model(1)
    model.crawl(0, [0])
    kept = GrowingPageRank(tol=1e-9)
    update = kept.update(*model.given())
    np.testing.assert_allclose(kept.values, [1.0], rtol=1e-9)
    assert update.sweeps == 1


def test_pagerank_of_no_pages_and_of_pages_without_links():
    kept = GrowingPageRank()
    assert kept.update(0, np.empty(0, np.uint8), np.empty(0, np.uint32), np.empty(0, np.uint64)).error == 0
    assert kept.values.shape == (0,)
    kept.update(3, np.empty(0, np.uint8), np.empty(0, np.uint32), np.empty(0, np.uint64))
    np.testing.assert_allclose(kept.values, 0.15)


# -- HITS -------------------------------------------------------------------------------------------------


def check_hits(kept: GrowingHits, update, model: Model, scores=None, hosts=None) -> None:
    n = model.num_pages
    a, A = kept.values, model.arcs(hosts)
    assert a.shape == (n,)
    assert np.isfinite(a).all()
    assert (a >= 0).all()
    assert np.isfinite(update.eigenvalue)
    assert update.eigenvalue > 0
    if n == 0:
        return
    assert a.mean() == pytest.approx(1)
    r = (
        np.ones(n)
        if scores is None
        else np.where(np.isfinite(scores) & (scores > 0), scores, 0).astype(float)
    )
    if not (A @ r).any():
        r = np.ones(n)
    if not A.any():
        np.testing.assert_array_equal(a, 1)
        assert update.eigenvalue == 1
        return
    root = np.sqrt(r)
    values, vectors = np.linalg.eigh(root[:, None] * (A.T @ A) * root[None, :])
    if n > 1 and values[-2] > 0.98 * values[-1]:
        return  # not unique, or too slow to tell anything
    assert update.converged
    h = A @ (root * np.abs(vectors[:, -1]))
    exact = A.T @ h
    np.testing.assert_allclose(a, exact / exact.mean(), atol=1e-6 * n)
    assert update.eigenvalue == pytest.approx(values[-1], rel=1e-6)
    np.testing.assert_allclose(a, A.T @ (A @ (r * a)) / update.eigenvalue, atol=1e-6 * n)


@given(growing(), st.data())
def test_hits_is_the_first_eigenvector_after_every_update(models, data):
    across = data.draw(st.booleans())
    all_hosts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=12)), np.uint32)
    kept = GrowingHits(tol=1e-9, max_iter=5000)
    for model in models:
        scores = scores_of(data, model, st.sampled_from([0.0, 0.5, 1.0, -1.0, np.nan, 3.0]))
        hosts = all_hosts[: model.num_pages] if across else None
        update = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        check_hits(kept, update, model, scores, hosts)


@given(growing(), st.data())
def test_hits_never_gives_a_nan(models, data):
    start = data.draw(st.lists(st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-300, 1e308, 1.0]), max_size=14))
    kept = GrowingHits(max_iter=3, start=start)
    for model in models:
        scores = scores_of(data, model, st.sampled_from([0.0, 1e-45, 3e38, np.nan, np.inf]))
        update = kept.update(*model.given(), scores)
        assert np.isfinite(kept.values).all()
        assert np.isfinite([update.error, update.eigenvalue]).all()
        assert not model.num_pages or kept.values.mean() == pytest.approx(1)


def test_hits_lets_a_new_community_overtake():
    model = Model(10)
    model.crawl(0, [1, 2])
    kept = GrowingHits(tol=1e-9)
    kept.update(*model.given())
    assert kept.values[[1, 2]].min() > 4.9
    for page in range(3, 7):
        model.crawl(page, [7, 8, 9])
    update = kept.update(*model.given())
    assert update.converged
    np.testing.assert_allclose(kept.values[[7, 8, 9]], 10 / 3, rtol=1e-6)


@pytest.mark.slow
def test_hits_starts_from_its_last_answer(monkeypatch):
    monkeypatch.setattr(module, "SLICE", 50)
    model = random_crawl(500, 6)
    kept = GrowingHits(tol=1e-8, max_iter=1000)
    cold = kept.update(*model.given())
    again = kept.update(*model.given())
    assert again.sweeps < 0.8 * cold.sweeps
    check_hits(kept, again, model)


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [GrowingPageRank, GrowingHits])
def test_bad_parameters_are_refused(kind):
    for tol in (0, -1, 1, float("nan"), 1e-10):
        with pytest.raises(ParameterError, match="tol"):
            kind(tol=tol)
    model = random_crawl(20, 2)
    kept = kind()
    kept.update(*model.given())
    pages, log, *visits = model.given()
    with pytest.raises(ParameterError, match="shrink"):
        kept.update(pages - 1, log, *visits)
    with pytest.raises(ParameterError, match="scores"):
        kept.update(pages, log, *visits, scores=np.ones(pages - 1, np.float32))
    with pytest.raises(ParameterError, match="places"):
        kept.update(pages, log, visits[0], visits[1][1:])


def test_more_bad_parameters_are_refused():
    for damping in (0, 1, float("nan")):
        with pytest.raises(ParameterError, match="damping"):
            GrowingPageRank(damping)
    with pytest.raises(ParameterError, match="max_iter"):
        GrowingHits(max_iter=0)
    kept = GrowingPageRank()
    model = random_crawl(20, 2)
    kept.update(*model.given())
    with pytest.raises(ParameterError, match="hosts"):
        kept.update(*model.given(), hosts=np.zeros(20, np.uint32))


def head_at(log: np.ndarray, place: int) -> np.void:
    return log[place : place + HEAD_SIZE].view(HEAD)[0]


@pytest.mark.parametrize("kind", [GrowingPageRank, GrowingHits])
@pytest.mark.parametrize("harm", ["kind", "length", "target", "short", "count", "one more", "page", "place"])
def test_a_damaged_log_is_refused_before_it_is_followed(kind, harm):
    model = Model(300)
    model.crawl(4, [1, 2, 3])
    model.crawl(5, [1, 200, 299])
    pages, log, ids, places = model.given()
    log = log.copy()
    head = head_at(log, int(places[1]))
    if harm == "kind":
        head["kind"] = LEASE
    elif harm == "length":
        head["length"] = 2**32 - 1
    elif harm == "target":
        pages = 299
    elif harm == "short":
        log = log[:-1]
    elif harm == "count":
        head["listed"] = 100
    elif harm == "one more":
        # The next frame's first byte would pass for a link.
        head_at(log, int(places[0]))["listed"] += 1
    elif harm == "page":
        ids = np.array([4, 300], np.uint32)
    else:
        places = np.array([places[0], len(log) - 3], np.uint64)
    with pytest.raises(DamageError, match="no valid visit of page"):
        kind().update(pages, log, ids, places)


@given(st.lists(st.integers(0, 2**32 - 2), unique=True, max_size=30), st.binary(max_size=255))
def test_links_are_decoded_as_they_were_written(numbers, content_hash):
    model = Model(2**32 - 1)
    model.crawl(9, [3])
    page = 5
    model.crawl(page, numbers, content_hash)
    row = np.empty(len(numbers), np.uint32)
    log, place = np.frombuffer(model.log, np.uint8), np.uint64(model.places[page])
    count = kernels.links(log, place, np.uint64(page), np.empty(0, np.uint32), row)
    assert row[: int(count)].tolist() == sorted(numbers)
    assert row_sound(log, place, np.uint64(max([page, *numbers]) + 1))
    assert not numbers or not row_sound(log, place, np.uint64(max(numbers)))
