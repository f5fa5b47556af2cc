"""`Graph`: compressed sparse rows on memory-mapped arrays; building, folding, cutting, walking."""
