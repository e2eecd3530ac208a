"""What a training step trains: equal transformer blocks, with an embedding before them and an output layer after them.

>>> from mlsys import models
>>> round(Decoder.of(models.llama2("70b", seq=4096), tokens=4096).params / 1e9, 1)
68.7
"""

from dataclasses import dataclass, replace

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue
from mlsys.models import Block, LanguageModel


@dataclass(frozen=True)
class Decoder:
    """A stack of blocks that is trained on sequences of one length.

    With experts, each block has so many copies of its MLP, and every token passes `experts_per_token` of them. Biases,
    normalizations and position embeddings are not counted; in GPT-2 XL they are a five-hundredth of the parameters.

    Attributes:
        block: one block.
        layers: blocks.
        tokens: s, of each sequence.
        vocabulary: rows of the embedding and of the output layer, which share their weights.
        experts: copies of the MLP in each block.
        experts_per_token: MLPs that a token passes.

    Raises:
        InvalidValue: if a size is not a positive integer, or a token passes more experts than there are.
    """

    block: Block
    layers: int
    tokens: int
    vocabulary: int
    experts: int = 1
    experts_per_token: int = 1

    def __post_init__(self) -> None:
        for name in ("layers", "tokens", "vocabulary", "experts", "experts_per_token"):
            positive_int(name, getattr(self, name))
        if self.experts_per_token > self.experts:
            raise InvalidValue(
                f"experts_per_token is {self.experts_per_token}, but there are {self.experts} experts: "
                f"give at most {self.experts}"
            )

    @classmethod
    def of(cls, model: LanguageModel, tokens: int) -> "Decoder":
        """Return what training a language model of `mlsys.models` on sequences of `tokens` trains."""
        return cls(model.block, model.layers, tokens, model.vocabulary)

    @property
    def attention_params(self) -> int:
        """Parameters of the attention of one block: 2 h^2 for queries and output, 2 h h_kv for keys and values."""
        width = self.block.width
        return 2 * width**2 + 2 * width * self.block.kv_heads * width // self.block.heads

    @property
    def mlp_params(self) -> int:
        """Parameters of one MLP: two matrices, or three with a gate."""
        return (3 if self.block.gated else 2) * self.block.width * self.block.mlp

    @property
    def embedding_params(self) -> int:
        """Parameters of the embedding, which the output layer shares."""
        return self.vocabulary * self.block.width

    @property
    def params(self) -> int:
        """All parameters."""
        return self.layers * (self.attention_params + self.experts * self.mlp_params) + self.embedding_params

    @property
    def widened(self) -> Block:
        """The block with one MLP as wide as all that a token passes: it keeps as many results for the backward pass."""
        return replace(self.block, mlp=self.experts_per_token * self.block.mlp)

    def model_flops(self, batch: int) -> float:
        """FLOPs that a step on `batch` sequences needs, nothing done twice: 3 times those of the forward pass.

        Formula: 6 FLOPs for each token and each parameter that it passes, and 12 s h for each token and layer of
        attention's two products, over all pairs of tokens. With 12 h^2 parameters in a block that is the paper's
        72 b s l h^2 (1 + s / 6h + v / 12 l h). Source: Korthikanti et al., MLSys 2023, appendix A.
        """
        passed = self.layers * (self.attention_params + self.experts_per_token * self.mlp_params)
        mixing = 12 * self.layers * self.tokens * self.block.width
        return positive_int("batch", batch) * self.tokens * (6.0 * (passed + self.embedding_params) + mixing)
