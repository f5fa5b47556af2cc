"""Web archives: WARC, ARC and WAT records, and the links in them."""
