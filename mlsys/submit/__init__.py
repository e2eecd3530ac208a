"""The submit queue: students hand in at any time, get a signed receipt, and see verdicts within minutes.

`mlsys serve` runs a small web service on Tornado, which Jupyter brings along, with SQLite below it or any database
that SQLAlchemy reaches. The web process takes files, signs receipts and shows pages; it never runs what students wrote.
A process beside it judges what waits, with the workers and sandboxes of `mlsys grade`.
"""
