"""What is wrong on a crawled site, and on which pages to mend it."""
