"""One page looked up, against the same page among all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink import Crawl, CrawlView, Politeness
from inlink.errors import FolderError
from inlink.protocol import Link
from inlink.store import urls as urls_module
from inlink.store.log import URLS as URLS_FILE
from inlink.store.reader import known_pages
from storefolders import look_up

HOSTS = ["http://a.com/", "https://b.org/", "http://c.net/"]
URLS = st.builds("{}{}".format, st.sampled_from(HOSTS), st.integers(0, 60))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("crawled"), st.lists(URLS, max_size=50)),
        st.tuples(st.just("scored"), st.lists(st.tuples(URLS, st.sampled_from([0.25, 0.5])), max_size=9)),
        st.tuples(st.just("failed"), st.sampled_from([404, 500, None])),
        st.tuples(st.just("moved"), URLS),
        st.tuples(st.just("released"), st.none()),
        st.tuples(st.just("left"), st.none()),
        st.tuples(st.just("reload"), st.none()),
        st.tuples(st.just("closed"), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(STEPS, st.booleans())
def test_a_page_looked_up_is_the_page(tmp_path_factory, steps, indexed):
    folder, now = tmp_path_factory.mktemp("lookup") / "c", [1000.0]
    patch = pytest.MonkeyPatch()
    if indexed:
        patch.setattr(urls_module, "_FEW", 1)

    def opened():
        return Crawl(
            folder,
            policy="hosts-in-turns",
            politeness=Politeness(delay=0, in_flight=99),
            clock=lambda: now[0],
            max_retries=1,
        )

    crawl = opened()
    try:
        crawl.seed([(host, k / 4) for k, host in enumerate(HOSTS)])
        for what, given_ in steps:
            now[0] += 70
            if what == "reload":
                crawl.reload("failed", "gone", "excluded")
            elif what == "closed":
                crawl.close()
                crawl = opened()
            else:
                for lease in crawl.next(1):
                    if what in ("crawled", "scored"):
                        crawl.crawled(lease, given_, score=0.75)
                    elif what == "failed":
                        crawl.failed(lease, "oh", status=given_)
                    elif what == "moved":
                        crawl.crawled(lease, redirected_to=given_)
                    elif what == "released":
                        crawl.release(lease)
        reader = known_pages(folder)
        for page in range(reader.num_pages):
            url = reader.url(page)
            for name in (url, page):
                assert look_up(folder, name) == reader.page(page)
        assert look_up(folder, "http://nowhere.example/") is None
        assert look_up(folder, reader.num_pages) is None
    finally:
        crawl.close()
        patch.undo()


def test_no_crawl_is_told(tmp_path):
    with pytest.raises(FolderError):
        look_up(tmp_path, "http://a.com/")


def test_a_page_with_a_variant_is_looked_up_as_it_is_known(tmp_path):
    url = "http://a.com/form"
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed([Link(url, variant="POST:1"), "http://a.com/other"])
    for asked, found in (
        (f"{url}#POST:1", f"{url}#POST:1"),
        ("http://A.com/form#POST:1", f"{url}#POST:1"),
        ("http://a.com/other#place", "http://a.com/other"),
        (f"{url}#POST:2", None),
        (f"{url}#POST:1\nhttp://a.com/other", None),
    ):
        page = CrawlView.open(tmp_path / "c").page(asked)
        assert (page and page.url) == found


@pytest.mark.parametrize(("old", "new"), [(b"/1\n", b"/1x"), (b"/12", b"/\n2"), (b"/39\n", b"/39x")])
def test_a_page_behind_a_damaged_line_is_refused(tmp_path, old, new):
    """A line that is lost or added before a URL would give it the number of another page."""
    urls = [f"http://a.com/{k}" for k in range(40)]
    with Crawl(tmp_path / "c") as crawl:
        for url in urls:
            crawl.seed([url])
    path = tmp_path / "c" / URLS_FILE
    path.write_bytes(path.read_bytes().replace(b"http://a.com" + old, b"http://a.com" + new, 1))
    for url in (urls[20], urls[39]):
        with CrawlView.open(tmp_path / "c") as view:
            if new == b"/39x" and url == urls[20]:
                # The damage is behind this line.
                assert view.page(url).id == 20
                continue
            for question in (view.page, view.path):
                with pytest.raises(FolderError, match="is damaged"):
                    question(url)
