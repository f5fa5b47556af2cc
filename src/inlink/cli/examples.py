"""The examples that ``--help`` and the manual pages show, a line each. Those of a group are those of its commands."""

EXAMPLES = r"""
inlink build crawl.warc.gz -o web
inlink build links.tsv.gz -o web
inlink build *.warc.wat.gz -o hosts --level host --workers 2
inlink fold web -o hosts --level host
inlink fold mycrawl -o domains --level domain
inlink subgraph web -o core --largest-component strong
inlink subgraph web -o fetched --crawled
inlink rank web
inlink rank mycrawl --content
inlink rank web --algorithm harmonic,pagerank
inlink rank links.tsv -o ranks.csv
inlink top web
inlink top web --by hits --hubs -n 20 --json
inlink whatif web changes.tsv
inlink whatif web changes.tsv --page about.html --json
inlink whatif mycrawl --suggest 20 --raise pages.txt
inlink diff january february
inlink diff web web --by pagerank --by hits
inlink diff mycrawl --as-of 2026-11-01
inlink drift january february
inlink drift january february --node com.example --json
inlink audit mycrawl -o report.html
inlink audit mycrawl --only broken
inlink audit mycrawl --since january --fail-on broken,orphans
inlink info web
inlink info web --structure
inlink info links.tsv --json
inlink export web -o web.parquet --ranking pagerank
inlink export web -o ranks.csv --by pagerank
inlink publish web -o dataset --title "Links of example.org" --licence CC-BY-4.0
inlink plot degrees web -o degrees.png
inlink plot ranks web --by pagerank -o ranks.svg
inlink plot rank-against-degree web --by pagerank -o ranks.png
inlink plot convergence web -o convergence.png
inlink plot compare web pagerank hits -o both.png
inlink plot neighbourhood web https://example.org/ -o around.png
inlink crawl https://example.org/ -o mycrawl
inlink crawl example.org --topic "postgres replication" --policy hits --use-scores --pages 5000
inlink crawl -o mycrawl
inlink seed mycrawl urls.txt
inlink next mycrawl --peek
inlink next mycrawl -n 100
inlink crawl-info mycrawl
inlink crawl-info mycrawl --top 20
inlink reload mycrawl
inlink reload mycrawl --gone --excluded
inlink replay web --policy breadth-first,pagerank --budget 500 -o results
inlink replay mycrawl --at 10%,50%
inlink import-ranking mycrawl ranks.tsv --name mine
inlink import-ranking mycrawl cc-main-2026-apr-may-jun/host --name commoncrawl --hosts
inlink dump pages mycrawl -o pages.tsv
inlink dump links mycrawl --json
inlink dump items mycrawl -o items.jsonl
inlink backup mycrawl -o mycrawl.backup
inlink repair mycrawl
inlink repair mycrawl -o sound
inlink page mycrawl https://example.org/about
inlink page web about.html
inlink why mycrawl https://example.org/about
inlink why mycrawl about.html --json
inlink why mycrawl about.html --without index.html
inlink find mycrawl '\.pdf$'
inlink find web --text about
inlink links mycrawl https://example.org/
inlink links web about.html
inlink near web https://example.org/ --hops 2
inlink near web about.html --sharing
inlink path mycrawl https://example.org/about
inlink path web about.html --from index.html
inlink serve mycrawl
inlink serve mycrawl other --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
inlink token add anna --role spider
inlink token list
inlink token remove anna
inlink reshard mycrawl --shards 4 -o shards
inlink reshard shards/1 shards/2 shards/3 shards/4 --shards 1 -o whole
inlink nutch webgraph --segment-dir crawl/segments --db web
inlink nutch loops --db web --depth 2
inlink nutch linkrank --db web
inlink nutch scoreupdate --db web --crawl mycrawl
inlink nutch nodedump --db web --scores --topn 10
inlink nutch nodereader --db web --url https://example.org/
inlink nutch linkdump --db web --url https://example.org/
inlink spark build @wat.paths.gz -o release --level host --master yarn
inlink spark rank release --master yarn
"""


def examples_of(command: str) -> str:
    """Return the end of the help of a command (``plot degrees``) or of a group: its examples."""
    lines = [line for line in EXAMPLES.splitlines() if f"{line} ".startswith(f"inlink {command} ")]
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
