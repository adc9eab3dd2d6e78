"""Benchmarks: ratios between the product and a floor or a peer that does the same work, in one interleaved run."""
