"""Training steps and what chips hold: against published runs, limits that must hold, and other routes to a number."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from mlsys import Hardware, models
from mlsys.errors import InvalidValue
from mlsys.models import Block
from mlsys.roofline import Roofline
from mlsys.scaling import (
    Cluster,
    Decoder,
    Fabric,
    NothingFits,
    Plan,
    PlanDoesNotDivide,
    fabric,
    footprint,
    model_flops_utilization,
    plans,
    ranked,
    run_of,
    runs,
    schedule,
    sustained,
    train_step,
)

A100 = Hardware.Cloud.A100
SELENE = Cluster(sustained(A100), fabric("nvlink-3"), fabric("infiniband-hdr"))
GPT3 = run_of("gpt3-175b").decoder
LLAMA = Decoder.of(models.llama2("70b"), tokens=4096)
MIXTURE = Decoder(Block(4096, 32, 8, 14336, gated=True), 32, 4096, 32000, experts=8, experts_per_token=2)
FREE = Fabric("free", bandwidth=1e30)
"""Links that take no time."""

with (Path(__file__).parents[1] / "golden/activations.csv").open() as file:
    HELD = list(csv.DictReader(file))


def errors() -> dict[tuple[str, str], float]:
    """Predicted over measured time of a step, less one, for each run and recomputation."""
    return {
        (run.name, how): train_step(run.decoder, run.plan(how), SELENE).total / run.measured[how] - 1
        for run in runs()
        for how in run.measured
    }


def test_the_eight_training_times_of_selene_are_within_4_percent_in_the_mean_and_9_at_worst():
    """Two constants were fitted to them: the shares of peak and of bandwidth that an A100 sustains."""
    found = [abs(float(error)) for error in errors().values()]
    assert len(found) == 8
    assert mean(found) < 0.04
    assert max(found) < 0.09


@pytest.mark.parametrize(("recompute", "published"), [("selective", 0.542), ("full", 0.421)])
def test_eight_times_the_chips_reach_the_utilization_of_the_abstract(recompute, published):
    """530B on 2,240 GPUs, to which nothing was fitted: Korthikanti et al., abstract."""
    run = run_of("turing-530b")
    plan = run.plan(recompute, data=8)
    assert plan.chips == 2240
    step = train_step(run.decoder, plan, SELENE)
    found = model_flops_utilization(run.decoder, plan, A100.peak("fp16"), step.total)
    assert found == pytest.approx(published, rel=0.04)


@pytest.mark.parametrize("row", [r for r in HELD if r["unit"] == "GiB"], ids=lambda r: f"{r['model']} {r['quantity']}")
def test_a_chip_holds_the_published_bytes(row):
    """The published ones are of the blocks alone."""
    width, heads, layers, batch, tensor, pipeline, groups = (
        int(row[name]) for name in "width heads layers batch tensor_parallel pipeline_parallel interleaving".split()
    )
    decoder = Decoder(Block(width, heads, heads, 4 * width), layers, 2048, vocabulary=1)
    plan = Plan(
        batch=batch * pipeline,
        tensor=tensor,
        pipeline=pipeline,
        interleaving=groups,
        sequence=row["sequence_parallel"] == "yes",
        microbatch=batch,
        recompute=row["recompute"],
    )
    held = footprint(decoder, plan)
    found = held.activations if row["quantity"] == "activations" else held.state
    assert found.m_as("GiB") == pytest.approx(float(row["value"]), rel=0.02)


@pytest.mark.parametrize(("nodes", "measured"), [(2, 86), (3, 96)])
def test_rings_between_nodes_use_all_cards_of_a_node(nodes, measured):
    """Eight A100s and four InfiniBand HDR cards in a node: NVIDIA/nccl-tests, issues 175 and 119, bus bandwidth."""
    half = replace(fabric("infiniband-hdr"), bandwidth=12.5e9)  # of a card that two chips share
    joined = replace(SELENE, between=half).ring(8 * nodes)
    assert joined.efficiency * joined.bandwidth / 1e9 == pytest.approx(measured, rel=0.07)


def test_rings_between_nodes_are_as_fast_as_their_slowest_part():
    one_card, of_a_node = SELENE.between.bandwidth, SELENE.inside.efficiency * SELENE.inside.bandwidth
    rates = {apart: SELENE.ring(64, apart).bandwidth for apart in (1, 2, 8, 64)}
    assert rates == {1: min(8 * one_card, of_a_node / 0.9), 2: 4 * one_card, 8: one_card, 64: one_card}
    fast = replace(SELENE, between=replace(SELENE.between, bandwidth=1e15))
    assert fast.ring(16).efficiency * fast.ring(16).bandwidth == pytest.approx(of_a_node)
    assert SELENE.ring(8) is SELENE.inside


def test_every_published_run_fits_into_its_chips():
    for run in runs():
        for how in run.measured:
            assert footprint(run.decoder, run.plan(how)).total < A100.memory_capacity


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.name)
def test_model_flops_are_those_of_the_published_formula(run):
    """72 b s l h^2 (1 + s / 6h + v / 12 l h)."""
    of, h = run.decoder, run.decoder.block.width
    formula = 72 * 3 * of.tokens * of.layers * h**2 * (1 + of.tokens / (6 * h) + of.vocabulary / (12 * of.layers * h))
    assert of.model_flops(3) == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("model", [models.gpt2("xl", seq=1024), models.llama2("70b", seq=2048)], ids=lambda m: m.name)
def test_model_flops_are_three_times_those_of_the_forward_pass(model):
    tokens = 1024 if "GPT-2" in model.name else 2048
    assert Decoder.of(model, tokens).model_flops(1) == pytest.approx(3 * model.flops.m, rel=0.001)
    assert Decoder.of(model, tokens).params == pytest.approx(model.params.m, rel=0.005)


@pytest.mark.parametrize("decoder", [GPT3, LLAMA, MIXTURE])
def test_chips_together_hold_the_whole_model_once_for_each_data_group(decoder):
    """But for the embedding, which is counted on every stage, as it stands on the first that is asked for."""
    bare = replace(decoder, vocabulary=1)
    for plan in (Plan(batch=8, data=4), Plan(batch=64, data=2, tensor=8, pipeline=4), Plan(batch=8, data=8, expert=1)):
        weights = plan.tensor * plan.pipeline * footprint(bare, plan).weights.m_as("byte")
        assert weights == pytest.approx(2 * bare.params, rel=1e-4)


@pytest.mark.parametrize(("sharding", "shared"), [(0, ()), (1, ("optimizer",)), (2, ("optimizer", "gradients"))])
def test_sharding_divides_what_it_says_by_the_data_groups(sharding, shared):
    one = footprint(LLAMA, Plan(batch=16, data=16))
    held = footprint(LLAMA, Plan(batch=16, data=16, sharding=sharding))
    for name in ("weights", "gradients", "optimizer"):
        parts = 16 if name in shared else 1
        assert getattr(held, name).m == pytest.approx(getattr(one, name).m / parts)
    everything = footprint(LLAMA, Plan(batch=16, data=16, sharding=3))
    assert 16 * everything.state.m == pytest.approx(one.state.m)


def test_chips_that_share_experts_hold_each_of_them_once():
    apart = footprint(MIXTURE, Plan(batch=8, data=8, expert=8)).weights.m
    together = footprint(MIXTURE, Plan(batch=8, data=8)).weights.m
    assert together - apart == pytest.approx(2 * 32 * 7 * MIXTURE.mlp_params)
    sharded = [footprint(MIXTURE, Plan(batch=8, data=8, expert=e, sharding=1)).optimizer.m for e in (1, 2, 8)]
    assert sharded == pytest.approx([sharded[0]] * 3)


def test_a_pipeline_with_few_microbatches_keeps_fewer():
    full, half = (footprint(GPT3, Plan(batch=batch, tensor=8, pipeline=8)).activations for batch in (8, 4))
    assert half == full / 2


def test_a_step_of_one_chip_takes_the_flops_over_the_rate():
    """With a memory that takes no time, and nothing done twice."""
    chip = Roofline("chip", 1e30, {"tensor": 1e12, "vector": 1e30}, "tensor", "test")
    step = train_step(GPT3, Plan(batch=2), Cluster(chip, FREE, FREE)).total
    assert step.m_as("s") == pytest.approx(GPT3.model_flops(2) / 1e12, rel=1e-9)


@pytest.mark.parametrize(("data", "tensor", "pipeline"), [(1, 1, 1), (8, 1, 1), (1, 8, 1), (1, 1, 4), (4, 2, 8)])
def test_links_that_take_no_time_make_a_step_as_much_shorter_as_there_are_chips(data, tensor, pipeline):
    """But for the pipeline's bubble and what tensor parallelism repeats, both of which are left out here."""
    free = replace(SELENE, inside=FREE, between=FREE)
    plan = Plan(batch=64, data=data, tensor=tensor, pipeline=pipeline, sequence=tensor > 1, sharding=1)
    decoder = replace(GPT3, vocabulary=tensor)  # no output layer, which would burden the last stage alone
    one, many = (train_step(decoder, p, free) for p in (Plan(batch=64, sharding=1), plan))
    assert many.exchanged.m_as("s") == pytest.approx(0, abs=1e-9)
    working = (many.total - many.bubble).m_as("s")
    assert working * plan.chips == pytest.approx(one.total.m_as("s"), rel=1e-3)


@pytest.mark.parametrize(("pipeline", "interleaving"), [(4, 1), (8, 1), (8, 3)])
def test_the_bubble_is_that_of_the_simulated_schedule(pipeline, interleaving):
    free = replace(SELENE, inside=FREE, between=FREE)
    plan = Plan(batch=32, tensor=8, pipeline=pipeline, interleaving=interleaving)
    step = train_step(replace(GPT3, vocabulary=8), plan, free)
    simulated = schedule(pipeline, 32, interleaving=interleaving)
    working = (step.total - step.optimizer).m_as("s")
    assert step.bubble.m_as("s") / working == pytest.approx(simulated.waiting(0), rel=1e-3)


def test_gradients_hide_as_far_as_they_may_and_no_further_than_the_backward_pass():
    plan = Plan(batch=256, data=16, tensor=8, microbatch=16, fp32_gradients=False)
    times = [train_step(GPT3, plan, SELENE, overlap=share).gradients.m_as("s") for share in (0, 0.5, 1)]
    assert times[1] == pytest.approx(times[0] / 2)
    assert times[2] == 0
    slow = replace(SELENE, between=Fabric("slow", bandwidth=1e8))
    assert train_step(GPT3, plan, slow, overlap=1).gradients.m_as("s") > 0


def test_sharing_the_weights_costs_half_more_traffic_than_an_all_reduce_of_16_bit_gradients():
    """Three halves of the volume: Rajbhandari et al., ZeRO, section 7.2.2; here for one microbatch."""
    plan = Plan(batch=8, data=8, fp32_gradients=False)
    wire = replace(SELENE, inside=Fabric("wire", 1e9), between=Fabric("wire", 1e9))
    reduced, shared, everything = (
        train_step(LLAMA, replace(plan, sharding=s), wire).gradients.m_as("s") for s in (0, 1, 3)
    )
    assert shared == pytest.approx(reduced)
    assert everything == pytest.approx(1.5 * reduced)


def test_the_busiest_expert_sets_the_pace():
    plan = Plan(batch=8, data=8, expert=8)
    even, uneven = (train_step(MIXTURE, plan, SELENE, imbalance=value) for value in (1.0, 1.5))
    assert uneven.experts.m_as("s") > even.experts.m_as("s") > 0
    flops = 6 * (2 * MIXTURE.mlp_params) * MIXTURE.layers * MIXTURE.tokens  # 6 for each parameter and token
    assert (uneven.products - even.products).m_as("s") == pytest.approx(0.5 * flops / 0.77 / 312e12)


def test_every_plan_divides_and_has_the_chips_and_none_is_missed():
    found = set(plans(LLAMA, 16, 32))
    assert found
    for plan in found:
        plan.check(LLAMA)
        assert plan.chips == 16
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2, 4, 8, 16):
            fits = 16 % (tensor * pipeline) == 0
            assert any((p.tensor, p.pipeline) == (tensor, pipeline) for p in found) == fits


def test_the_fastest_plan_fits_and_no_other_that_fits_is_faster():
    best, *rest = ranked(LLAMA, 64, 128, SELENE, 80e9)
    assert best.held.total.m_as("byte") <= 80e9
    for choice in rest:
        assert choice.step.total >= best.step.total
    fastest = min(
        train_step(LLAMA, plan, SELENE).total.m_as("s")
        for plan in plans(LLAMA, 64, 128)
        if footprint(LLAMA, plan).total.m_as("byte") <= 80e9
    )
    assert best.step.total.m_as("s") == fastest


def test_a_plan_that_does_not_divide_is_refused_with_its_numbers():
    cases = [
        (
            lambda: Plan(batch=10, data=4),
            "batch of 10 does not divide among 4 data groups.*leaves 2 over; give a batch of",
        ),
        (
            lambda: Plan(batch=20, pipeline=8, interleaving=2),
            "20 microbatches do not divide among 8 interleaved stages",
        ),
        (lambda: Plan(batch=8, data=8, expert=3), "3 chips that share the experts do not divide 8 data groups"),
        (
            lambda: Plan(batch=8, pipeline=7).check(GPT3),
            "96 layers do not divide among 7 stages.*leaves 5 over.*such as 6",
        ),
        (lambda: Plan(batch=8, tensor=5).check(GPT3), "96 heads do not divide among 5 chips.*leaves 1 over.*such as 4"),
        (lambda: Plan(batch=8, tensor=16).check(LLAMA), "8 heads of keys and values do not divide among 16 chips"),
        (lambda: Plan(batch=16, data=16, expert=16).check(MIXTURE), "8 experts do not divide among 16 chips"),
        (lambda: train_step(GPT3, Plan(batch=8, pipeline=5), SELENE), "96 layers do not divide"),
        (lambda: ranked(GPT3, 7, 9, SELENE, 80e9), "divide among 7 chips in no way"),
    ]
    for call, message in cases:
        with pytest.raises(PlanDoesNotDivide, match=message):
            call()


def test_what_else_is_wrong_is_named():
    cases = [
        (lambda: Plan(batch=8, sequence=True), "sequence parallelism needs tensor parallelism"),
        (lambda: Plan(batch=8, interleaving=2), "interleaving is 2, but pipeline is 1"),
        (lambda: Plan(batch=8, sharding=4), "sharding is 4"),
        (lambda: Plan(batch=0), "batch must be a positive integer"),
        (lambda: Plan(batch=8, recompute="all"), "recompute must be one of"),
        (lambda: sustained(A100, matrix=1.1), r"matrix is 1\.1"),
        (lambda: replace(SELENE, node=16), "joins at most 8 chips, and a node has 16"),
        (lambda: train_step(GPT3, Plan(batch=1), SELENE, overlap=2), "overlap is 2.*nearest: 1"),
        (lambda: train_step(GPT3, Plan(batch=1), SELENE, imbalance=0.5), r"imbalance is 0\.5"),
        (lambda: replace(GPT3, experts_per_token=2), "experts_per_token is 2, but there are 1 experts"),
        (lambda: run_of("megatron-22b").plan("none"), "recompute must be one of"),
    ]
    for call, message in cases:
        with pytest.raises(InvalidValue, match=message):
            call()
    with pytest.raises(NothingFits, match="no plan for 8 chips fits into 80 GB each: the smallest share.*holds"):
        ranked(GPT3, 8, 64, SELENE, 80e9)
