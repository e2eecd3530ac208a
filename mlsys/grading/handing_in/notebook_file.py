"""The file of the notebook that runs, which only its editor knows."""

import json
import sys
from pathlib import Path

from mlsys.errors import UserError
from mlsys.grading.session.notebook import ask_colab, in_colab, notebook_path

_COLAB_WAITS_S = 20


class NotHandedIn(UserError):
    """Nothing was handed in, or so it seems here; a notebook shows only the reason, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"ERROR: {self}"]


def notebook_file(given: str = "") -> tuple[str, bytes]:
    """Return the name and the content of the notebook that runs, as it was saved last; in Colab, as it is now.

    Args:
        given: path of the file, where the editor does not tell it.

    Raises:
        UserError: the editor does not tell it, or the file cannot be read.
    """
    if not given and in_colab():
        notebook = ask_colab(_COLAB_WAITS_S)
        if notebook is None:
            raise NotHandedIn("Colab does not give the notebook: download it, and hand it in on the queue's page")
        return "notebook.ipynb", json.dumps(notebook).encode()
    path = Path(given) if given else notebook_path(vars(sys.modules["__main__"]))
    if not given and path.suffix != ".ipynb":
        raise NotHandedIn("this editor does not tell the notebook's file: name it, as in notebook='tiling.ipynb'")
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise NotHandedIn(f"{path} cannot be read ({error.strerror}): name the file with notebook='...'") from error
