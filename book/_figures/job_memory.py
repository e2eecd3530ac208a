"""What a model needs when it answers or trains, in bytes: for the figure of the shares, and for the calculator."""

from dataclasses import dataclass

from mlsys import models
from mlsys.models import LanguageModel
from mlsys.models.training import RECOMPUTE

LANGUAGE = {
    "gpt2-small": lambda **work: models.gpt2("small", **work),
    "gpt2-xl": lambda **work: models.gpt2("xl", **work),
    "llama2-7b": models.llama2_7b,
    "llama2-13b": models.llama2_13b,
    "llama2-70b": models.llama2_70b,
}
OTHER = {
    "resnet50": ("ResNet-50", "images", models.resnet50),
    "mobilenet_v2": ("MobileNetV2", "images", models.mobilenet_v2),
    "dlrm": ("DLRM", "samples", models.dlrm),
}


@dataclass(frozen=True)
class Need:
    """What a model needs, in bytes, for every batch and context.

    Attributes:
        name: the model.
        unit: what a batch is counted in.
        params: its parameters.
        tokens: longest context, None if the model has no tokens.
        weight_size: bytes of a weight when it answers.
        cache: bytes of the KV cache for a token.
        results: for each job, bytes for a token and for the square of the tokens; without tokens, for a sample.
    """

    name: str
    unit: str
    params: int
    tokens: int | None
    weight_size: int
    cache: float
    results: dict[str, tuple[float, float]]

    def bytes(self, job: str, batch: int, tokens: int) -> tuple[float, float, float, float]:
        """Return the bytes of each of `PARTS`."""
        serve, length = job == "serve", tokens if self.tokens else 1
        size = self.weight_size if serve else models.ADAM_BYTES["weights"]
        rest = 0 if serve else sum(models.ADAM_BYTES.values()) - size
        linear, square = self.results[job]
        results = batch * (linear if serve else linear * length + square * length**2)
        return size * self.params, rest * self.params, results, batch * length * self.cache if serve else 0


def needs() -> dict[str, Need]:
    """Return what each model needs; slopes are differences of what the package counts."""
    found = {}
    for key, make in LANGUAGE.items():
        model: LanguageModel = make(seq=1, decode=True)
        results = {"serve": (model.peak_activation_bytes.m_as("byte"), 0.0)}
        for recompute in RECOMPUTE:
            one, two = (model.kept_bytes(tokens, recompute=recompute).m_as("byte") for tokens in (1, 2))
            square = (two - 2 * one) / 2
            results[recompute] = (one - square, square)
        longest = 1024 if key.startswith("gpt2") else 4096
        cache = model.kv_bytes_per_token.m_as("byte/token")
        name = model.name.partition(",")[0]
        found[key] = Need(name, "sequences", model.params.m_as("param"), longest, 2, cache, results)
    for key, (name, unit, build) in OTHER.items():
        one, two = (build(batch=batch, dtype="fp16") for batch in (1, 2))
        peak = two.peak_activation_bytes.m_as("byte") - one.peak_activation_bytes.m_as("byte")
        kept = models.kept_bytes(two.ops).m_as("byte") - models.kept_bytes(one.ops).m_as("byte")
        found[key] = Need(name, unit, one.params.m_as("param"), None, 2, 0, {"serve": (peak, 0), "none": (kept, 0)})
    return found
