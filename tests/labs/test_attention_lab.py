import runpy

import pytest
import torch
from helpers.known_lab import HEAD, ROOT, KnownLab

from mlsys import ops
from mlsys.bench.run import lab_names
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.kernels.compiler_report import compiler_report

ATTENTION = KnownLab("attention")
verdict, with_fault = ATTENTION.verdict, ATTENTION.with_fault
CELLS = ATTENTION.cells


@pytest.fixture(scope="module")
def names():
    """What the lab's setup and solutions define, with kernels for the interpreter."""
    return lab_names(ROOT / "labs/attention/lab.py")


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("question", ["a", "b", "c", "d", "e", "f", "challenge"])
def test_the_solution_passes_whatever_the_hidden_tests_draw(question, seed):
    found = verdict(question, seed=seed)
    assert found.name == "passed", found.message


FAULTS = {  # question, what: right, wrong
    ("a", "scores written only"): ("(n * d + n * n)", "(n * d + n * n // 2)"),
    ("a", "blocks rounded down"): ("-(-n // block)", "n // block"),
    ("a", "queries shared too"): ("2 * (heads + kv_heads)", "4 * kv_heads"),
    ("b", "a sum that is not corrected"): ("l * factor +", "l +"),
    ("b", "an output that is not corrected"): ("o[c] * factor +", "o[c] +"),
    ("b", "a factor the wrong way round"): ("math.exp(m - new)", "math.exp(min(new - m, 700))"),
    ("b", "the block's own maximum"): ("max(m, *scores)", "max(scores)"),
    ("b", "nothing visible"): ("if new == -math.inf:", "if new == math.inf:"),
    ("c", "no maximum"): ("new = tl.maximum(m, tl.max(x, axis=0))", "new = tl.max(x, axis=0) * 0"),
    ("c", "a sum that is not corrected"): ("l = l * factor +", "l = l +"),
    ("c", "no mask of the scores"): ('x = tl.where(j < M, x, float("-inf"))', "x = tl.where(j < j + 1, x, 0.0)"),
    ("c", "the first head's keys"): ("(h * M + j)", "(h * 0 + j)"),
    ("c", "no scale"): ("* scale", "* (scale / scale)"),
    ("d", "a score of 0 past the last key"): (
        "tl.where((j < M)[None, :], x, float",
        "tl.where((j < M)[None, :], x, 0 * float",
    ),
    ("d", "no mask of the store"): ("element_ty), mask=(i < N)[:, None])", "element_ty))"),
    ("d", "an output that is not corrected"): ("v, o * factor[:, None],", "v, o,"),
    ("d", "the strides of the keys for the values"): ("j[:, None] * stride_vn", "j[:, None] * stride_kn"),
    ("d", "numbers that are neighbors"): ("c[:, None] * stride_kd", "c[:, None]"),
    ("d", "a result that is contiguous"): ("i[:, None] * stride_yn", "i[:, None] * D"),
    ("d", "one head"): ("h = tl.program_id(1).to(tl.int64)", "h = tl.program_id(1).to(tl.int64) * 0"),
    ("d", "a sum in float16"): (
        "o = tl.dot(p.to(v.dtype), v, o *",
        "o = tl.dot(p.to(v.dtype), v, o.to(tl.float16).to(tl.float32) *",
    ),
    ("d", "a division in every block"): ("m = new", "m = new\n        o = o / l[:, None]"),
    ("e", "a mask without the diagonal"): ("(j[None, :] <= i[:, None])", "(j[None, :] < i[:, None])"),
    ("e", "later blocks are read"): (
        "seen = tl.minimum(tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, N), M)",
        "seen = M",
    ),
    ("e", "one block too many is read"): ("range(0, seen, BLOCK_K)", "range(0, seen + BLOCK_K, BLOCK_K)"),
    ("e", "a loop that ends early"): ("range(0, seen, BLOCK_K)", "range(0, seen - BLOCK_K + 1, BLOCK_K)"),
    ("e", "the diagonal counted as free"): (
        "min(block * block_q + 1, m) // block_k",
        "min((block + 1) * block_q, m) // block_k",
    ),
    ("e", "queries that do not exist"): (
        "seen = min((block + 1) * block_q, n, m)",
        "seen = min((block + 1) * block_q, m)",
    ),
    ("f", "keys of its own"): ("k_ptr + h // GROUP * stride_kh", "k_ptr + h * stride_kh"),
    ("f", "groups that are interleaved"): ("v_ptr + h // GROUP *", "v_ptr + h % (tl.num_programs(1) // GROUP) *"),
    ("f", "logarithms of base 2"): ("(m + tl.log2(l)) * 0.69314718", "m + tl.log2(l)"),
    ("f", "a sum without its maximum"): ("(m + tl.log2(l))", "tl.log2(l)"),
    ("f", "the diagonal is not masked"): (
        "free = tl.minimum(first, M) // BLOCK_K",
        "free = tl.minimum(first + BLOCK_Q, M) // BLOCK_K",
    ),
    ("challenge", "all keys are read"): ("range(0, seen, BLOCK_K)", "range(0, M, BLOCK_K)"),
    ("challenge", "all queries are read"): (
        "range(tl.program_id(0) * BLOCK_K // BLOCK_Q * BLOCK_Q, N, BLOCK_Q)",
        "range(0, N, BLOCK_Q)",
    ),
    ("challenge", "no delta"): ("ds = p * (dp - delta[:, None])", "ds = p * dp"),
    ("challenge", "no scale"): ("(dk * scale)", "dk"),
    ("challenge", "shares of later keys"): (
        "visible = (j[:, None] <= i[None, :]) &",
        "visible = (j[:, None] <= i[None, :] + 1) &",
    ),
    ("challenge", "queries from the first on"): (
        'p = tl.exp(tl.where(visible, x - logsum[None, :], float("-inf")))',
        "p = tl.exp(x - logsum[None, :])",
    ),
    ("challenge", "keys past the last"): ("mask=(j < M)[:, None])\n    tl.store(dv_ptr", ")\n    tl.store(dv_ptr"),
}
SOLUTIONS = {"a": "a-counts", "b": "b-absorb"}


@pytest.mark.proof
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_faulty_answer_is_found_by_a_visible_test(fault):
    question, (right, wrong) = fault[0], FAULTS[fault]
    found = verdict(question, with_fault(SOLUTIONS.get(question, f"{question}-kernel"), right, wrong))
    assert found.name in ("wrong answer", "out of bounds", "error"), found
    assert "hidden test" not in found.message


ATTACKS = {
    ("a", "numbers equal to all"): (
        "a-counts",
        "class All(int):\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __hash__ = int.__hash__\n\n"
        "def product_flops(*sizes):\n    return All(3)\n\n"
        "separate_bytes = fused_bytes = blocked_bytes = shared_bytes = product_flops\n",
    ),
    ("b", "a state of floats equal to all"): (
        "b-absorb",
        "class All(float):\n    __eq__ = __le__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
        "    __sub__ = __rsub__ = lambda self, other: 0.0\n    __hash__ = float.__hash__\n\n"
        "def absorb(state, scores, values):\n    return All(1.0), All(1.0), [All(0.0) for _ in state[2]]\n",
    ),
    ("b", "a state that is kept from the call before"): (
        "b-absorb",
        "import math\n\ndef absorb(state, scores, values, kept=[]):\n    kept.append((state, scores, values))\n"
        "    return max(state[0], *scores), float(len(kept)), [0.0] * len(state[2])\n",
    ),
    ("d", "the formula replaced"): (
        "d-kernel",
        "def right_attention(q, k, v, causal=False):\n    return torch.zeros_like(q)\n\n"
        "launch_attention = launch_tokens_first = lambda kernel, constants, y, *inputs: y.zero_()\n\n"
        + CELLS["d-kernel"].source.split("### BEGIN SOLUTION")[0].rstrip()
        + "\n    pass\n",
    ),
    ("e", "blocks counted by looking at the caller"): (
        "e-kernel",
        "import sys\n\ndef key_blocks(*given):\n    frame = sys._getframe(1)\n"
        "    return frame.f_locals.get('right', (0, 1))\n\n"
        + CELLS["e-kernel"].source.split("@triton.jit")[1].join(["@triton.jit", ""]),
    ),
    ("f", "refusals switched off and the work left to the library"): (
        "f-kernel",
        "def refuse(*arguments):\n    return None\n\n"
        "def gqa_kernel(q, k, v, y, logsum, *sizes, GROUP, **constants):\n"
        "    x = right_scores(q, k, causal=True)\n    y.copy_(right_attention(q, k, v, causal=True))\n"
        "    logsum.copy_(x.logsumexp(2))\n",
    ),
    ("gap", "a cause equal to all"): (
        "gap-causes",
        "class All(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n\n"
        "cause_1 = cause_2 = cause_3 = cause_4 = All('passes')\n",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=" ".join)
def test_an_attack_scores_nothing(attack):
    cell_id, source = ATTACKS[attack]
    found = verdict(attack[0], ATTENTION.with_cell(cell_id, source))
    assert found.name != "passed", found
    assert found.fraction == 0


def test_the_counts_are_those_of_the_package(names):
    """`mlsys.ops` counts the same work by formulas of its own."""
    for heads, kv_heads, n, d in [(16, 4, 4096, 64), (3, 1, 37, 20), (2, 2, 1, 128)]:
        sizes = {"batch": 1, "heads": heads, "seq": n, "head_dim": d, "dtype": "fp16"}
        separate, fused = ops.attention(**sizes, fused=False), ops.attention(**sizes)
        assert names["product_flops"](heads, n, d) == fused.flop_count
        assert names["separate_bytes"](heads, n, d, 2) == separate.read_count + separate.write_count
        assert names["fused_bytes"](heads, n, d, 2) == fused.read_count + fused.write_count
        blocked = ops.attention(**sizes, query_block=16)
        assert names["blocked_bytes"](heads, n, d, 16, 2) == blocked.read_count + blocked.write_count
        shared = ops.attention(**sizes, kv_heads=kv_heads)
        assert names["shared_bytes"](heads, kv_heads, n, d, 2) == shared.read_count + shared.write_count


def test_the_formula_is_what_torch_computes(names):
    q, k, v = torch.randn(4, 9, 16), torch.randn(2, 9, 16), torch.randn(2, 9, 16)
    for causal in (False, True):
        exact = torch.nn.functional.scaled_dot_product_attention(
            q[None].double(), k[None].double(), v[None].double(), is_causal=causal, enable_gqa=True
        )[0]
        torch.testing.assert_close(names["right_attention"](q, k, v, causal).double(), exact, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(names["right_race"](q, k, v), names["right_attention"](q, k, v, True))


def test_the_reference_of_the_race_passes_the_tests_of_its_question():
    source = f"{ATTENTION.rival('g-speed')}\ngqa_kernel = reference_kernel\n"
    found = verdict("f", ATTENTION.with_cell("f-kernel", source))
    assert found.name == "passed", found.message


def test_the_reference_of_the_race_has_the_configuration_of_the_solution(names):
    reference_config = ATTENTION.made("g-speed", "reference_config")
    for shape in names["RACES"]:
        assert reference_config(shape, "fp16") == names["config"](shape, "fp16")


def test_the_race_counts_no_more_work_than_the_mask_leaves(names):
    for heads, kv_heads, n, d in names["RACES"]:
        visible = int(torch.ones(n, n, dtype=torch.int8).tril().sum())
        assert names["race_op"]((heads, kv_heads, n, d), "fp16").flop_count <= 4 * heads * visible * d


def test_the_races_agree_with_the_kernel(names):
    draw = names["grading"].Draws("this test")
    q, k, v = names["race_inputs"](draw, (4, 2, 37, 16), "fp16")
    y = torch.full(q.shape, float("nan"), dtype=q.dtype)
    names["launch_race"](names["gqa_kernel"], {"BLOCK_Q": 16, "BLOCK_K": 16}, y, q, k, v)
    torch.testing.assert_close(y, names["right_race"](q, k, v), rtol=4e-3, atol=2e-3)


SIDES = {"q": (4, 6, 16), "k": (4, 5, 16), "v": (4, 5, 16), "y": (4, 6, 16)}
REFUSED = {
    "a double": ({"q": torch.float64}, r"q is torch\.float64"),
    "two dtypes": ({"k": torch.float16}, r"k is torch\.float16, q is torch\.float32"),
    "two sides": ({"v": (5, 16)}, r"v has shape \(5, 16\): give \(heads, rows, d\)"),
    "no keys": ({"k": (4, 0, 16)}, "each 1 or more"),
    "a head of 20 numbers": ({"q": (4, 6, 20)}, "a head has 20 numbers: give 16, 32, 64, 128"),
    "fewer heads of keys": ({"k": (2, 5, 16), "v": (2, 5, 16)}, r"give both as \(4, keys, 16\)"),
    "fewer values than keys": ({"v": (4, 4, 16)}, r"k has shape \(4, 5, 16\) and v \(4, 4, 16\)"),
    "a result of another size": ({"y": (4, 5, 16)}, r"y has shape \(4, 5, 16\): the result has \(4, 6, 16\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_kernel_does_not_take_is_refused_by_name(names, case):
    changed, says = REFUSED[case]
    tensors = {}
    for name, shape in SIDES.items():
        change = changed.get(name, torch.float32)
        tensors[name] = torch.zeros(change) if isinstance(change, tuple) else torch.zeros(shape, dtype=change)
    q, k, v, y = tensors.values()
    with pytest.raises(ValueError, match=says):
        names["launch_attention"](names["attention_kernel"], {"BLOCK_Q": 16, "BLOCK_K": 16}, y, q, k, v)


def test_groups_that_do_not_divide_the_heads_and_gaps_are_refused(names):
    q, k, v, y = (torch.zeros(shape) for shape in SIDES.values())
    with pytest.raises(ValueError, match="GROUP is 3 and there are 4 heads of queries"):
        names["launch_gqa"](names["gqa_kernel"], {"GROUP": 3, "BLOCK_Q": 16, "BLOCK_K": 16}, y, q, k, v)
    with pytest.raises(ValueError, match="q has strides .* needs contiguous tensors"):
        names["launch_rows"](names["row_kernel"], {"BLOCK": 16}, y, torch.zeros(6, 4, 16).permute(1, 0, 2), k, v)


@pytest.mark.proof
def test_the_inspection_finds_nothing_in_the_solutions(tmp_path):
    """Right after the lab's own launches, on shapes where every edge is ragged."""
    kernels = [f"{question}-kernel" for question in ("c", "d", "e", "f", "challenge")]
    module = tmp_path / "kernels.py"
    module.write_text(HEAD + "\n".join(CELLS[cell].source for cell in ("setup", "launches", "race-given", *kernels)))
    names = runpy.run_path(str(module))
    found = []

    class Inspecting:
        def __init__(self, kernel):
            self.kernel = names[kernel]

        def __getitem__(self, grid):
            return lambda *arguments, **constants: found.extend(inspect(self.kernel, grid, *arguments, **constants))

    q, dy, y = torch.randn(4, 21, 16), torch.randn(4, 21, 16), torch.empty(4, 21, 16)
    k, v = torch.randn(4, 37, 16), torch.randn(4, 37, 16)
    blocks, rows = {"BLOCK_Q": 16, "BLOCK_K": 32}, torch.randn(4, 21).abs()
    names["launch_rows"](Inspecting("row_kernel"), {"BLOCK": 16}, y, q, k, v)
    names["launch_attention"](Inspecting("attention_kernel"), blocks, y, q, k, v)
    names["launch_tokens_first"](Inspecting("causal_kernel"), blocks, y, q, k, v)
    names["launch_first_rows"](Inspecting("causal_kernel"), blocks, torch.empty(4, 16, 16), q, k, v)
    names["launch_gqa"](Inspecting("gqa_kernel"), blocks | {"GROUP": 2}, y, q, k[:2], v[:2])
    names["launch_logsum"](Inspecting("gqa_kernel"), blocks | {"GROUP": 2}, torch.empty(4, 21), q, k[:2], v[:2])
    names["launch_dq"](Inspecting("dq_kernel"), blocks, y, q, k, v, dy, rows, rows)
    names["launch_dkdv"](Inspecting("dkdv_kernel"), blocks, torch.empty(2, 4, 37, 16), q, k, v, dy, rows, rows)
    assert found == []


@pytest.mark.proof
def test_the_lab_compiles_its_kernels_without_spills(names, capsys):
    [cell] = [cell for cell in ATTENTION.lab.cells if "report.registers" in cell.source]
    reports = []

    def report(*arguments, **named):
        reports.extend(compiler_report(*arguments, **named))
        return reports[-1:]

    exec(compile(cell.source, cell.id, "exec"), names | {"compiler_report": report})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "row_kernel", "attention_kernel", "causal_kernel", "gqa_kernel"
    ]  # fmt: skip
    assert {one.spilled_bytes for one in reports} == {0}
