"""Crawl a site and bring your own fetching: python fetch_best_first.py FOLDER URL PAGES

The folder keeps the order, the politeness and the links of the crawl. You can stop the program at any time.
The next run goes on.
"""

import sys
import time
import urllib.error
import urllib.request

import inlink
from inlink.scoring.reading import read_page

folder, start, pages = sys.argv[1], sys.argv[2], int(sys.argv[3])
host = start.split("/")[2].split(":")[0]
with inlink.Crawl(folder, rules=inlink.Rules(hosts=[host]), politeness={"delay": 0.1}) as crawl:
    crawl.seed([start])
    while pages and (wait := crawl.due_in()) is not None:
        time.sleep(wait)
        for lease in crawl.next(1):
            pages -= 1
            try:
                with urllib.request.urlopen(lease.url, timeout=30) as response:
                    body, kind = response.read(1 << 22), response.headers.get("Content-Type", "")
            except urllib.error.HTTPError as error:
                crawl.failed(lease, status=error.code)
            except OSError as error:
                crawl.failed(lease, error=str(error))
            else:
                page = read_page(body, lease.url, content_type=kind)
                crawl.crawled(lease, [link.url for link in page.links])
                print(lease.url)
