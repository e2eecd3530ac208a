"""How large published models are, as their authors print it; these models are not built here, only their size is known.

>>> from mlsys import models
>>> models.published_size("gpt-3").params
<Quantity(1.75e+11, 'param')>
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.units import Quantity


@dataclass(frozen=True)
class PublishedSize:
    """A model by its size.

    Attributes:
        id: its key in `data/model_sizes.toml`.
        name: what it is called.
        announced: the year in which it came out, with its source.
        parameters: how many it has, with their source; of a mixture of experts, all of them.
    """

    id: str
    name: str
    announced: Sourced
    parameters: Sourced

    @property
    def year(self) -> int:
        """The year in which it came out."""
        return int(self.announced.value.m)

    @property
    def params(self) -> Quantity:
        """Its parameters."""
        return self.parameters.value


class _SizeEntry(Entry, frozen=True, kw_only=True):
    name: str
    announced: Number
    params: Number


SIZES = Catalog(
    "model",
    lambda: data_file("model_sizes.toml", dict[str, _SizeEntry]),
    lambda key, entry: PublishedSize(key, entry.name, entry.announced.sourced, entry.params.sourced),
)
"""Every model whose size is known, the oldest first."""


def published_sizes() -> Mapping[str, PublishedSize]:
    """All models whose size is known, by id, the oldest first."""
    return SIZES.by_name()


def published_size(model_id: str) -> PublishedSize:
    """The model with this id.

    Raises:
        UnknownName: with the nearest id and all of them.

    >>> published_size("vgg-16").year
    2014
    """
    return SIZES.get(model_id)
