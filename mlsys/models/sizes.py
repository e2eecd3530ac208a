"""How large published models are, as their authors print it; these models are not built here, only their size is known.

>>> from mlsys import models
>>> models.published_size("gpt-3").params
<Quantity(1.75e+11, 'param')>
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from mlsys.core.sourced import Sourced, load_toml, sourced
from mlsys.errors import UnknownName
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


@cache
def published_sizes() -> Mapping[str, PublishedSize]:
    """All models whose size is known, by id, the oldest first."""
    found = {}
    for key, entry in load_toml("model_sizes.toml").items():
        place = f"model_sizes.toml {key}"
        announced = sourced(entry["announced"], f"{place} announced")
        found[key] = PublishedSize(key, entry["name"], announced, sourced(entry["params"], f"{place} params"))
    return MappingProxyType(found)


def published_size(model_id: str) -> PublishedSize:
    """The model with this id.

    Raises:
        UnknownName: with the nearest id and all of them.

    >>> published_size("vgg-16").year
    2014
    """
    if model_id not in published_sizes():
        raise UnknownName.of("model", model_id, published_sizes())
    return published_sizes()[model_id]
