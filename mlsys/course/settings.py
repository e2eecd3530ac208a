"""The one place that knows the public address of the course: `repository` in `_config.yml`.

The address is that of the student tree that `mlsys publish` writes, because Colab and the wheel's link open that.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from mlsys.errors import UserError

PLACEHOLDER = "YOUR_ORGANISATION"
"""Stands in the address until the instructor enters the public repository."""
WHEEL_TOKEN = "MLSYS_WHEEL_URL"
"""Stands in a lab's first cell for the address of the wheel."""


@dataclass(frozen=True)
class Settings:
    """Where the student tree is public, and which version of the package it holds."""

    repository: str
    branch: str
    version: str

    @property
    def wheel_name(self) -> str:
        """File name of the package's wheel."""
        return f"mlsys-{self.version}-py3-none-any.whl"

    @property
    def wheel_url(self) -> str:
        """Address that pip installs the wheel from."""
        return f"{self.repository}/raw/{self.branch}/wheels/{self.wheel_name}"

    def colab_url(self, notebook: str) -> str:
        """Return the address that opens `notebook` (its path in the student tree) in Colab.

        >>> Settings("https://github.com/a/b", "main", "1.0").colab_url("labs/tiling/tiling.ipynb")
        'https://colab.research.google.com/github/a/b/blob/main/labs/tiling/tiling.ipynb'
        """
        owner_and_name = re.sub(r"^https://github\.com/", "", self.repository)
        return f"https://colab.research.google.com/github/{owner_and_name}/blob/{self.branch}/{notebook}"

    def page_url(self, address: str) -> str:
        """Return the public address of a page of the site (its path in the site), as GitHub Pages serves it.

        >>> Settings("https://github.com/a/b", "main", "1.0").page_url("book/index.html")
        'https://a.github.io/b/book/index.html'
        """
        owner, name = re.sub(r"^https://github\.com/", "", self.repository).split("/")
        return f"https://{owner}.github.io/{name}/{address}"

    def download_url(self, notebook: str) -> str:
        """Return the address that downloads `notebook` (its path in the student tree)."""
        return f"{self.repository}/raw/{self.branch}/{notebook}"


def read_settings(root: Path) -> Settings:
    """Return the settings of the repository at `root`.

    Raises:
        UserError: `_config.yml` is missing, is no YAML, or has no GitHub address under `repository`.
    """
    path = root / "_config.yml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        repository = config["repository"]
        url, branch = str(repository["url"]).rstrip("/"), str(repository["branch"])
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run the command in the course repository") from error
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise UserError(f"{path}: needs `repository:` with `url` and `branch` ({error})") from error
    if url.endswith(".git"):
        raise UserError(f"{path}: repository.url is the address to clone from: write {url.removesuffix('.git')}")
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise UserError(f"{path}: repository.url is {url!r}; Colab opens only https://github.com/OWNER/NAME")
    return Settings(url, branch, package_version(root))


def book_title(root: Path) -> str:
    """Return the title of the book of the repository at `root`."""
    return str(yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"])


def package_version(root: Path) -> str:
    """Return the version of `mlsys` that pyproject.toml at `root` states."""
    path = root / "pyproject.toml"
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise UserError(f"{path}: needs project.version ({error})") from error
