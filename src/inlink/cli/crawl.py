"""``inlink crawl``: a polite broad spider, without a Scrapy project."""

import sys
from pathlib import Path
from typing import Any

import click

from inlink.base.table import counted
from inlink.cli.options import Output, setting_options, settings_given
from inlink.cli.sections import QUIET, VERBOSE
from inlink.cli.show import say
from inlink.errors import MissingExtraError, ParameterError

_FOLDER = Output(
    "`inlink crawl` works in a folder: set INLINK_CRAWL to this URL in a Scrapy project to crawl for a server"
)
_FILE = click.Path(path_type=Path, dir_okay=False)

_ENDINGS = {
    "finished": "nothing more to fetch now",
    "pages": "--pages is reached",
    "seconds": "--seconds are over",
    "certain": "the best places are certain (--until-top)",
    "interrupted": "interrupted; the same command continues",
}


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--output", "-o", "folder", type=_FOLDER, help="The crawl's folder. Default: HOST.crawl.")
@click.option("--seeds", type=_FILE, help="File of further URLs to begin at, one a line.")
@click.option("--topic", help="Topic of good pages, in a few words.")
@click.option("--keywords", help="Words of good pages, separated by commas.")
@click.option(
    "--classifier", type=_FILE, help="A scikit-learn text classifier of good pages, saved by skops."
)
@click.option(
    "--pages", type=click.IntRange(1), help="Stop when the crawl has this many pages, including earlier runs."
)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="Stop this run after this many seconds."
)
@click.option(
    "--until-top",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Stop as soon as the first N places by PageRank with teleports to the seeds are certain.",
)
@click.option(
    "--within",
    "until_within",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --until-top: pages whose ranks differ by at most this share of all rank may still change places. "
    "Default: 0.01.",
)
@click.option(
    "--max-wait",
    type=click.FloatRange(0, 1e9),
    help="Stop if no page is due within this many seconds. Default: 60; never stop if pages are revisited.",
)
@click.option(
    "--host",
    "within",
    flag_value="host",
    default=None,
    help="Stay on the hosts of the URLs, not on their domains.",
)
@click.option("--everywhere", "within", flag_value="everywhere", help="Follow links to all sites.")
@click.option(
    "--sitemaps/--no-sitemaps",
    default=None,
    help="Also read /sitemap.xml if robots.txt names no sitemap, or read no sitemaps. Default: those in robots.txt.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=16,
    show_default=True,
    help="Maximum number of hosts that are fetched from at the same time.",
)
@click.option("--agent", help="The User-Agent. It should say how to contact you.")
@click.option("--warc", type=Output(dir_okay=False), help="Write all responses to this .warc.gz file.")
@click.option(
    "--warc-seen",
    type=_FILE,
    multiple=True,
    help="Archive or CDXJ index of an earlier crawl: its bodies are not written to --warc again. May be repeated.",
)
@click.option(
    "--wacz",
    type=Output(dir_okay=False),
    help="Pack the file of --warc as this .wacz file at the end, unless the crawl is interrupted.",
)
@click.option("--items", type=Output(dir_okay=False), help="Write a line of JSON for each page to this file.")
@click.option("--preset", help="Rules for reading a site: wikipedia, or a TOML file of your own.")
@click.option(
    "--start",
    multiple=True,
    metavar="TITLE",
    help="Title of an article of the preset to begin at. May be repeated.",
)
@click.option(
    "--sqlite",
    type=Output(dir_okay=False),
    help="Write the preset's articles and links to tables in this file.",
)
@click.option(
    "--allow-private",
    is_flag=True,
    help="Also fetch addresses that are not public: loopback, private, link-local, reserved. The addresses of the URLs "
    "on the command line are always allowed. The folder keeps what you allow.",
)
@click.option(
    "--allow-address",
    "allow_addresses",
    multiple=True,
    metavar="CIDR",
    help="Fetch this address or network even if it is not public, such as 10.1.0.0/16.",
)
@click.option(
    "--deny-address",
    "deny_addresses",
    multiple=True,
    metavar="CIDR",
    help="Never fetch this address or network.",
)
@click.option(
    "--reset-addresses",
    is_flag=True,
    help="Forget all addresses and hosts that earlier runs of this crawl permitted or denied.",
)
@click.option(
    "--apply-rules",
    is_flag=True,
    help="Crawl even if the rules or addresses of this run exclude more than a tenth of the waiting pages.",
)
@setting_options
@click.pass_context
def crawl(context: click.Context, /, urls: tuple[str, ...], folder: Path | None, **given: Any) -> None:
    """Crawl the sites of the URLs politely, following links.

    The crawl stays on the registered domains of the URLs; --host, --domains and --everywhere change that.
    Ctrl-C ends the crawl cleanly; a second Ctrl-C ends it at once. The same command continues the crawl. The exit code
    is 1 if no page could be crawled; the output gives the causes.
    """
    try:
        from inlink.scrapy import run
        from inlink.scrapy.options import CrawlOptions
    except ModuleNotFoundError as error:
        # The caller reports a missing Numba.
        if (error.name or "").startswith("inlink") or error.name == "numba":
            raise
        raise MissingExtraError(f"{error.name} is not installed: pip install 'inlink[scrapy]'") from None
    if given["until_within"] is not None and given["until_top"] is None:
        raise ParameterError("--within says how exact --until-top is: give --until-top too")
    for name in ("agent", "until_within"):
        if given[name] is None:
            del given[name]
    given["settings"] = settings_given(given)
    keywords = given["keywords"]
    given["keywords"] = tuple(word.strip() for word in (keywords or "").split(",") if word.strip())
    if keywords is not None and not given["keywords"]:
        raise ParameterError(f"--keywords {keywords!r} has no words: give words separated by commas")
    options = CrawlOptions(**given)
    done = run.crawl(urls, folder, options, quiet=context.meta[QUIET], verbose=context.meta[VERBOSE])
    standing = done.standing
    excluded = standing.states.get("excluded", 0)
    for line in done.causes:
        say(line)
    say(
        f"{done.folder}: {counted(done.crawled, 'page')} in {done.seconds:,.0f} s, {counted(done.failed, 'error')}; "
        f"{counted(standing.crawled, 'page')} of {standing.known:,} known, {standing.waiting:,} waiting"
        f"{f', {excluded:,} excluded' if excluded else ''}"
        f"{'' if standing.harvest is None else f'; harvest {standing.harvest:.1%} of the rank that it may fetch'}"
        f"; {_ending(done.ending, done.left)}"
    )
    if options.until_top is not None:
        from inlink.crawl.certificate import certificate_lines, certify

        for line in certificate_lines(certify(done.folder, options.until_top, options.until_within)):
            say(line)
    if done.ending == "interrupted":
        sys.exit(130)
    if done.nothing:
        sys.exit(1)


def _ending(ending: str, left: str) -> str:
    """The reason why the run ended."""
    return f"no page is due soon (--max-wait), {left}" if ending == "finished" and left else _ENDINGS[ending]
