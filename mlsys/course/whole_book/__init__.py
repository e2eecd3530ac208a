"""The whole book in one file: as a PDF and as an EPUB, made from the built site, and a count of what is in it.

Both hold what the site holds. What a reader operates on the site (figures, self-checks, predictions) looks as it does
without a script. The students' edition leaves out the solutions of exercises and the pages for instructors.
"""
