"""Where a class is kept: in the files of its course, or in the database that the course's configuration names."""

from mlsys.classroom.store.store import DocumentStore, FileStore
from mlsys.course.nbgrader import database_url
from mlsys.course.tree import CourseTree


def store_of(tree: CourseTree) -> DocumentStore:
    """Return the store of a class.

    Raises:
        UserError: the configuration names another database than that to which the class was moved.
        ModuleNotFoundError: the class is in a database, and `psycopg` is not installed.
    """
    url = database_url(tree)
    if not url:
        return FileStore(tree)
    from mlsys.classroom.store.postgres import PostgresStore

    return PostgresStore(tree, url)
