import re
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inlink import Crawl
from inlink.frontier import traps
from inlink.frontier.kernels import traps as kernels
from inlink.frontier.traps import FACTORS, RULES, explain, line_codes
from inlink.urls.canonical import MAX_LENGTH, SESSION_PARAMETERS, canonical

YEAR = 2026


def codes(urls, year=YEAR):
    out = np.full(len(urls), 99, np.uint8)
    text = "".join(f"{url}\n" for url in urls).encode("utf-8", "surrogatepass")
    line_codes(np.frombuffer(text, np.uint8), year, out)
    return out


def penalty(url, year=YEAR):
    return float(FACTORS[codes([url], year)[0]])


DAY_OF = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?|((?:19|20|21)\d\d)(\d\d)(\d\d)", re.ASCII)


def date(text: str) -> int | None:
    found = DAY_OF.fullmatch(text)
    if found is None:
        return None
    year, month, day = found.group(1, 2, 3) if found[1] else found.group(4, 5, 6)
    return int(year) if 1 <= int(month) <= 12 and 1 <= int(day or 1) <= 31 else None


def digits(text: str, longest: int) -> bool:
    return bool(re.fullmatch(rf"[0-9]{{1,{longest}}}", text))


def slow(url: str, now: int) -> list[int]:
    """The twin of the kernels: the same measures by splitting and searching."""
    parts = urlsplit(url)
    segments = [s for s in parts.path.split("/") if s]
    first = segments[: kernels.KEPT]
    loops = [0]
    for period in range(1, len(first)):
        run = 0
        for a, b in zip(first, first[period:], strict=False):
            run = run + 1 if a == b else 0
            loops.append(run if run >= period else 0)
    years, calendar = [], 0
    i = 0
    while i < len(first):
        year, used = date(first[i]), 1
        if digits(first[i], 4) and len(first[i]) == 4:
            month, day = (first[i + 1 : i + 3] + ["", ""])[:2]
            if digits(month, 2) and 1 <= int(month) <= 12:
                if digits(day, 2) and 1 <= int(day) <= 31:
                    year, used = int(first[i]), 3
                elif len(month) == 2 and (month[0] == "0" or 1900 <= int(first[i]) <= 2199):
                    year, used = int(first[i]), 2
        i += used
        if year is not None:
            years.append(year)
            calendar += i == len(segments)
    sessions = len(re.findall(r";jsessionid", parts.path, re.IGNORECASE))
    names: list[str] = []
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        name = "".join(c.lower() if c.isascii() else c for c in name)
        if not name:
            continue
        names.append(name)
        means = traps.DATE_PARAMETERS.get(name)
        if any(name == s or (s[-1] == "*" and name.startswith(s[:-1])) for s in SESSION_PARAMETERS):
            sessions += 1
        elif means == "year" and digits(value, 4) and len(value) == 4:
            years.append(int(value))
            calendar += 1
        elif (year := date(value)) is not None:
            years.append(year)
            calendar += 1
        elif means == "part" and value[:1].isdigit() and value[:1].isascii() and len(value.encode()) <= 2:
            calendar += 1
    return [
        len(segments),
        max([first.count(s) for s in first], default=0),
        max(loops),
        calendar,
        max([year - now for year in years if year > now], default=0),
        max([now - year for year in years if year <= now], default=0),
        len(url.encode()) - (2 * url.count("%") if len(url.encode()) > 255 else 0),
        len(names),
        len(names) - len(set(names)),
        sessions,
    ]


numbers = "2024 2031 1066 1899 1900 2199 2200 05 5 12 10 13 0 00 31 32 99 20240512 20240532 20240500 20241301"
numbers += (
    " 18991231 19000101 21991231 22000101 20245012 2024-05 2024-05-12 2024-05-00 2024-00-01 2024-0512 202-05"
)
others = [
    "",
    "a",
    "b",
    "x;jsessionid=1",
    ";JSESSIONID",
    ";jsession",
    "%E3%81%82",
    "slug",
    "2024-05-1x",
    "2024a",
]
words = st.sampled_from(numbers.split() + others)
names = st.sampled_from(
    ["a", "b", "A", "Z", "z", "", "year", "Year", "YR", "month", "day", "date", "sid", "PHPSESSID", "%61"]
    + ["ASPSESSIONIDXY", "aspsessionid", "aspsession", "CFID", "side", "week", "jsessionid"]
)
pair = st.builds(lambda n, e, v: n + e + v, names, st.sampled_from(["", "=", "=="]), words)
made = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}/{'/'.join(path)}{query}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a", "example.com", "example.com:8080"]),
    st.lists(words, max_size=12) | st.lists(st.sampled_from("ab"), max_size=40),
    st.just("")
    | st.lists(pair, max_size=5).map(lambda q: "?" + "&".join(q))
    | st.lists(pair, max_size=30).map("?".join),
)


@given(st.lists(made, max_size=4), st.integers(1990, 2100))
@example(
    ["http://a.com", "https://a.com", "http://a.com/?", "http://a.com/" + "/".join(map(str, range(40)))], 2026
)
@example(["http://a.com/?" + "&".join(f"p{i % 33}" for i in range(50)), "http://a.com/" + "%E3" * 200], 2026)
@example(
    ["http://a.com/?year=20", "http://a.com/?year", "http://a.com/?date=2024-05-1", "http://a.com/2024/05"],
    2026,
)
@example(
    ["http://a.com/" + "x/" * 50 + "2024/05", "http://a.com/x;jsessioni", "http://a.com/x;jsessionid"], 2026
)
@example(
    [f"http://a.com/{'x' * n}%E3" for n in (239, 240, 241)] + ["http://a.com/?z=1&Z=2&@=3&`=4&[=5&{=6"], 2026
)
@example(
    ["http://a.com/2024/05/32", "http://a.com/2024/5/32", "http://a.com/" + "x/" * 30 + "2024/05/x"], 2026
)
def test_rules_and_codes_against_their_twin(urls, year):
    measures = [slow(url, year) for url in urls]
    points = [[rule.points_for(n) for rule, n in zip(RULES, row, strict=True)] for row in measures]
    for url, row, given_points in zip(urls, measures, points, strict=True):
        assert explain(url, year) == [
            (rule.name, rule.finding.format(amount), 0.8**count)
            for rule, amount, count in zip(RULES, row, given_points, strict=True)
            if count
        ]
    assert codes(urls, year).tolist() == [min(31, sum(row)) for row in points]


TAILS = st.text("/?;0189az.-:\u00e9", max_size=40)


@given(
    st.lists(
        st.tuples(st.sampled_from(["http", "https"]), TAILS, st.sampled_from([0, 7, 200, 240, 300, 3000])),
        min_size=1,
        max_size=6,
    )
)
@example([("https", "a/", 245), ("https", "a/", 246), ("https", "a/", 247), ("http", "a/2012/b", 0)])
@example([("https", "a.b/12", 0), ("https", "abcdefg/12", 0), ("https", "a.b/c/d/e", 0), ("https", "a?b", 0)])
def test_lines_have_the_codes_of_their_urls(parts):
    """Most lines are found to be simple eight bytes at a time. Their codes are those of each URL by itself."""
    urls = [f"{scheme}://{tail}{'x' * more}" for scheme, tail, more in parts]
    for url, code in zip(urls, codes(urls).tolist(), strict=True):
        product = np.prod([factor for _, _, factor in explain(url, YEAR)])
        assert FACTORS[code] == pytest.approx(max(product, 0.8**31), rel=1e-6)


def test_bytes_that_are_no_url_do_no_harm():
    odd = [
        "",
        "h",
        "http://",
        "http:///",
        "http://a?b",
        "é" * 300,
        "http://a/;jsessionid",
        "\udcff",
        "////////////",
    ]
    assert max(codes(odd)) <= 31
    assert [len(explain(url, YEAR)) for url in odd].count(0) >= 6
    assert codes([]).tolist() == []


REAL = [
    "https://www.wikipedia.org/",
    "https://en.wikipedia.org/wiki/PageRank",
    "https://en.wikipedia.org/wiki/1066",
    "https://en.wikipedia.org/wiki/2031_in_science",
    "https://en.wikipedia.org/w/index.php?title=PageRank&oldid=1193285934&action=history",
    "https://en.wikipedia.org/wiki/Category:Crawling_(web)",
    "https://ja.wikipedia.org/wiki/%E3%82%A6%E3%82%A7%E3%83%96%E3%82%AF%E3%83%AD%E3%83%BC%E3%83%A9%E3%83%BC%E3%81%AE%E4%B8%80%E8%A6%A7%E3%81%A8%E6%AD%B4%E5%8F%B2%E3%81%AE%E6%A6%82%E8%A6%81%E3%81%AE%E4%B8%80%E8%A6%A7%E3%81%A8",
    "https://www.nytimes.com/2024/05/12/us/politics/a-long-headline-about-something-that-has-happened-today.html",
    "https://www.nytimes.com/1998/01/03/archives/a-headline-of-that-day.html",
    "https://www.theguardian.com/world/2024/may/12/some-headline-with-words-live-updates",
    "https://www.bbc.co.uk/news/articles/c3gqd8k0yy5o",
    "https://example-blog.com/2019/11/05/how-we-built-it/",
    "https://example-blog.com/2019/11/how-we-built-it/",
    "https://example-blog.com/2019/11/05/how-we-built-it/#comment",
    "https://daringfireball.net/2024/5/12/a_title",
    "https://github.com/scrapy/scrapy",
    "https://github.com/scrapy/scrapy/issues/1802",
    "https://github.com/scrapy/scrapy/blob/master/docs/topics/settings.rst",
    "https://github.com/numba/numba/pull/9000/files/0abf9756717d984890739b12ae94de74bb203b58",
    "https://stackoverflow.com/questions/11227809/why-is-processing-a-sorted-array-faster-than-an-unsorted-array",
    "https://discuss.python.org/t/a-thread-about-something/2345/12",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=PL0123456789&index=3&t=42s",
    "https://www.amazon.com/Some-Product-Title/dp/B08N5WRWNW/ref=sr_1_3?keywords=x&qid=1650000000&s=books&sr=1-3",
    "https://shop.example.com/search?q=shoes&colour=red&size=42&sort=price&page=3",
    "https://arxiv.org/abs/2401.12345",
    "https://doi.org/10.1145/324133.324140",
    "https://docs.python.org/3/library/urllib.parse.html",
    "https://www.w3.org/TR/2014/REC-html5-20141028/",
    "https://www.w3.org/TR/1999/REC-html401-19991224/interact/forms.html",
    "https://www.gov.uk/government/publications/some-report-2023-to-2024/chapter-two",
    "https://example.com/index.php?option=com_content&view=article&id=20&Itemid=42&lang=en",
    "https://example.com/article?utm_source=a&utm_medium=b&utm_campaign=c&utm_term=d&utm_content=e&id=7",
    "https://example.com/list?tag[]=a&tag[]=b",
    "https://example.com/viewtopic.php?f=5&t=20311&start=40",
    "http://127.0.0.1:8000/a/b/c",
]

NEARLY_FREE = [
    "https://example.com/product/20240123/",
    "https://github.com/torvalds/linux/blob/master/drivers/net/wireless/ath/ath9k/main.c",
    "https://example-blog.com/2024/05/",
    "https://example-blog.com/2024/05/12/",
    "https://www.nytimes.com/1923/05/12/archives/a-headline-of-that-day.html",
    "https://github.com/scrapy/scrapy/blob/master/scrapy/core/downloader/handlers/http11.py",
    "https://github.com/apache/nutch/blob/master/src/java/org/apache/nutch/crawl/AdaptiveFetchSchedule.java",
    "https://example.com/listen?date=2024-05-12",
    "https://example.com/events/2026-11-03",
    "https://example.com/events/2027-11-03",
    "https://example.com/archive?year=2024&month=5",
]


def test_real_sites_have_none_or_next_to_none():
    assert len(REAL) > 30
    for url in REAL:
        assert explain(canonical(url), YEAR) == []
    for url in NEARLY_FREE:
        assert 0.5 < penalty(canonical(url)) < 0.81, url


TRAPS = {
    "deep": lambda n: "http://a.com" + "".join(f"/s{i}" for i in range(n)),
    "same": lambda n: "http://a.com" + "/about" * n,
    "two in turn": lambda n: "http://a.com/x" + "/a/b" * n,
    "mixed": lambda n: "http://a.com/en" + "".join(f"/p{i}/en" for i in range(n)),
    "relative link": lambda n: "http://a.com/news/" + "images/news/" * n + "x.html",
    "months ahead": lambda n: f"http://a.com/cal/{YEAR + n // 12}/{n % 12 + 1:02}",
    "days": lambda n: f"http://a.com/cal/{YEAR + n}-03-01/",
    "query year": lambda n: f"http://a.com/cal?year={YEAR + n}&month=3",
    "years back": lambda n: f"http://a.com/cal/{YEAR - 25 * n:04}/01",
    "long": lambda n: "http://a.com/" + "x" * 20 * n,
    "parameters": lambda n: "http://a.com/?" + "&".join(f"p{i}={i}" for i in range(n)),
    "facets": lambda n: "http://a.com/?" + "&".join(f"f={i}" for i in range(n)),
    "escaped": lambda n: "http://a.com/?" + "&".join("amp;" * i + "x=1" for i in range(n)),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_costs_more_the_deeper_it_goes(name):
    urls = [TRAPS[name](n) for n in range(1, 80)]
    urls = [url for url in urls if len(url) <= MAX_LENGTH]
    factors = FACTORS[codes(urls)]
    assert all(a >= b > 0 for a, b in pairwise(factors)), factors
    assert factors[0] >= 0.64
    assert factors[-1] <= 0.11, factors[-1]


def test_years_ahead_cost_more_than_years_ago():
    ahead = [penalty(f"http://a.com/{YEAR + n}/05/12/x") for n in range(5)]
    ago = [penalty(f"http://a.com/{YEAR - n}/05/12/x") for n in range(5)]
    assert ago == [1] * 5
    assert ahead[:2] == [1, 1]
    assert ahead[2] > ahead[3] > ahead[4]
    assert penalty("http://a.com/2028/05/12/x", 2027) == 1  # the year is the caller's, not the clock's


def test_session_ids_cost_something_each():
    urls = ["http://a.com/x", "http://a.com/x?PHPSESSID=1", "http://a.com/x;jsessionid=2?Sid=3"]
    assert codes(urls).tolist() == [0, 4, 8]
    assert explain(urls[1], YEAR) == [("session id", "1 session id(s)", pytest.approx(0.8**4))]


def test_penalties_are_found_again_when_a_crawl_is_opened(tmp_path):
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed([f"http://a.com/{k}{'/x' * (k % 20)}" for k in range(100)])
        rows = crawl.view.order(100).rows
    assert len({row.priority for row in rows}) > 5
    with Crawl(tmp_path / "c") as crawl:
        assert crawl.view.order(100).rows == rows


def test_the_table_is_sound():
    assert len({rule.name for rule in RULES}) == len(RULES) == kernels.MEASURES
    for rule in RULES:
        assert "{}" in rule.finding
        assert rule.step >= 1
        assert rule.points_for(rule.free) == 0
        assert rule.points_for(rule.free + 1) == rule.points
        assert rule.points_for(10_000) == rule.most <= 31
    assert FACTORS[0] == 1
    assert (np.diff(FACTORS) < 0).all()
    assert FACTORS[31] > 0
    # The kernel knows one beginning of a name, by its length.
    assert {len(n) for n in SESSION_PARAMETERS if n.endswith("*")} == {13}
