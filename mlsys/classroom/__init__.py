"""Grade a class: take in what students handed in, judge it, record it, and write every page and table."""
