"""Judge a class on many machines, as workers of a `dask.distributed` cluster.

The head runs `mlsys grade LAB --cluster ADDRESS`: it reads submissions, hands them out as values, and is the only one
that writes. Each worker, started with `mlsys worker ADDRESS`, judges one submission at a time in a sandbox of its own.
"""
