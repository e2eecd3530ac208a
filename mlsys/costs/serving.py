"""What a token costs: the roof that binds gives the time of a step, and the time is paid by the hour.

>>> from mlsys import Hardware, models
>>> llama, h100 = models.llama2_7b(seq=2048, decode=True), Hardware.Cloud.H100
>>> work = {"weights": llama.weight_bytes, "flops_per_token": llama.flops, "kv_cache": llama.kv_cache_bytes(2048)}
>>> chip = {"bandwidth": h100.memory_bw, "peak": h100.peak("fp16"), "hourly_rent": 2.49}
>>> for batch in (1, 32):
...     price = token_price(**work, **chip, batch=batch)
...     print(batch, price.roof, round(price.per_million, 2))
1 memory 3.0 dollar
32 memory 0.31 dollar
"""

from dataclasses import dataclass

from mlsys.core.arguments import Amount, amount, positive_amount, share
from mlsys.costs.economics import price_per_million_tokens
from mlsys.formulas import decode_throughput, token_latency
from mlsys.units import Quantity


@dataclass(frozen=True)
class TokenPrice:
    """The price of tokens, and what sets it.

    Attributes:
        roof: "memory" or "compute", whichever takes longer for a step.
        step: time of a step, in which each sequence gets one token.
        rate: tokens per second over all sequences.
        per_million: price of a million tokens, USD.
    """

    roof: str
    step: Quantity
    rate: Quantity
    per_million: Quantity


def token_price(
    *,
    hourly_rent: Amount,
    weights: Amount,
    flops_per_token: Amount,
    bandwidth: Amount,
    peak: Amount,
    kv_cache: Amount = 0.0,
    batch: int = 1,
    bandwidth_share: float = 1.0,
    compute_share: float = 1.0,
    busy: float = 1.0,
) -> TokenPrice:
    """Compute the price of a million tokens from the roof that binds.

    Formula: T = max((weights + batch kv_cache) / (bandwidth_share BW), batch flops_per_token / (compute_share R));
    price = rent T / (batch busy) x 10^6.

    The batch is the number of sequences that decode together. A prompt is read at once: then the batch is its tokens,
    and there is no kv_cache to read yet.

    Args:
        hourly_rent: of all chips that serve, USD per hour.
        weights: bytes of all weights that a step reads.
        flops_per_token: FLOPs of one token.
        bandwidth: BW of all chips, byte/second.
        peak: R of all chips, flop/second, in the precision used.
        kv_cache: bytes of the cache of one sequence.
        batch: tokens of a step.
        bandwidth_share: share of BW that is reached, above 0 and at most 1.
        compute_share: share of R that is reached, above 0 and at most 1.
        busy: share of the paid hours in which there is work, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> price = token_price(hourly_rent=3.6, weights=14e9, flops_per_token=14e9, bandwidth=3.5e12, peak=1e15)
    >>> price.roof, price.step.to("ms"), round(price.per_million, 9)
    ('memory', <Quantity(4.0, 'millisecond')>, <Quantity(4.0, 'dollar')>)
    """
    reached_bw = positive_amount("bandwidth", bandwidth, "byte/second") * share("bandwidth_share", bandwidth_share)
    reached_peak = positive_amount("peak", peak, "flop/second") * share("compute_share", compute_share)
    moving = token_latency(weights, reached_bw, kv_cache, batch)
    step = token_latency(weights, reached_bw, kv_cache, batch, flops_per_token, reached_peak)
    rate = decode_throughput(weights, reached_bw, kv_cache, batch, flops_per_token, reached_peak)
    computing_s = batch * amount("flops_per_token", flops_per_token, "flop") / reached_peak
    roof = "compute" if computing_s > moving.m_as("second") else "memory"
    return TokenPrice(roof, step, rate, price_per_million_tokens(hourly_rent, rate, share("busy", busy)))
