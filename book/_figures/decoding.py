"""What a decoding step of each language model moves, computes and holds, for the calculators of cost and fit."""

from collections.abc import Callable
from dataclasses import dataclass

from _figures.job_memory import LANGUAGE

from mlsys.core.dtypes import BITS
from mlsys.models import LanguageModel

FORMATS = ("fp16", "int8", "int4")
"""Number formats in which the calculators store weights; the caches stay in 16 bits."""
NAMES = {"fp16": "16 bits", "int8": "8 bits", "int4": "4 bits"}


@dataclass(frozen=True)
class Step:
    """A model's decoding step; every sequence gets one token.

    Attributes:
        name: the model.
        params: its parameters.
        longest: most tokens of a sequence.
        cache: bytes of the KV cache of a token, in 16 bits.
        results: bytes of intermediate results of a sequence.
        flops: FLOPs of a token without attention.
        flops_each: FLOPs of a token for each token in its cache.
    """

    name: str
    params: int
    longest: int
    cache: float
    results: float
    flops: float
    flops_each: float

    def weights(self, dtype: str) -> float:
        """Bytes of all weights in a number format."""
        return self.params * BITS[dtype] / 8


def steps() -> dict[str, Step]:
    """Return the step of each model; slopes are differences of what the package counts."""
    return {key: _step(make, 1024 if key.startswith("gpt2") else 4096) for key, make in LANGUAGE.items()}


def _step(make: Callable[..., LanguageModel], longest: int) -> Step:
    one, two = (make(seq=tokens, decode=True) for tokens in (1, 2))
    each = (two.flops - one.flops).m_as("flop")
    return Step(
        name=one.name.partition(",")[0],
        params=int(one.params.m),
        longest=longest,
        cache=one.kv_bytes_per_token.m_as("byte/token"),
        results=one.peak_activation_bytes.m_as("byte"),
        flops=one.flops.m_as("flop") - each,
        flops_each=each,
    )
