"""Measuring kernels for the record: the rows of a lab, the suite that the chapters draw on, and their tables."""
