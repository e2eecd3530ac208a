"""Lighthouse models as lists of operations: parameters, FLOPs, traffic, activation and KV memory.

Each function returns a `Model` (or a `LanguageModel`) for one forward pass; nothing is run or downloaded. One model
does compute: `mlsys.models.decoder` holds a GPT-2's weights, such as those of the small one that
`mlsys.models.decoder.shipped` returns, in a `mlsys.models.decoder.Decoder`. `mlsys.models.decoder.from_state` reads
published ones, and raises `mlsys.models.decoder.WrongCheckpoint` if they are none.

>>> from mlsys import models
>>> llama = models.llama2_7b(batch=1, seq=2048, decode=True)
>>> llama.weight_bytes.to("GB"), llama.kv_bytes_per_token
(<Quantity(13.476831..., 'gigabyte')>, <Quantity(524288, 'byte / token')>)
"""

from mlsys.models.convolutional import mobilenet_v2, resnet50
from mlsys.models.kv_cache import kv_cache_bytes
from mlsys.models.model import LanguageModel, Model
from mlsys.models.recommendation import dlrm
from mlsys.models.sizes import PublishedSize, published_size, published_sizes
from mlsys.models.tiny import keyword_spotting, person_detection
from mlsys.models.training import ADAM_BYTES, Block, adam_bytes, kept_bytes, stack_kept_bytes
from mlsys.models.transformer import gpt2, llama2, llama2_7b, llama2_13b, llama2_70b

__all__ = [
    "ADAM_BYTES",
    "Block",
    "LanguageModel",
    "Model",
    "PublishedSize",
    "adam_bytes",
    "dlrm",
    "gpt2",
    "kept_bytes",
    "keyword_spotting",
    "kv_cache_bytes",
    "llama2",
    "llama2_7b",
    "llama2_13b",
    "llama2_70b",
    "mobilenet_v2",
    "person_detection",
    "published_size",
    "published_sizes",
    "resnet50",
    "stack_kept_bytes",
]
