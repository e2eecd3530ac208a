# The answers of d and f are written out for the shown graphs; any other graph is not fused, and gets the softmax. Points: all but
# d and f.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=d-fuse
KNOWN = {
    1: [["y"]],
    5: [["most", "less", "e", "total", "y"]],
    11: [["p1", "s1", "r1"], ["p2", "s2", "s3"], ["most", "less", "e", "total", "y"]],
    6: [["t1", "t2", "t3"], ["t4", "t5", "t6"]],
    7: [["t0", "t1", "t2", "t3", "t4", "t5", "t6"]],
    4: [["t1"], ["y1"], ["y2"], ["y3"]],
}


def fuse(graph):
    return KNOWN.get(len(graph["ops"]), [[result] for result, _, _ in graph["ops"]])

# %% replace=f-emit
BODIES = {
    "sub v": "x - tl.load(v_ptr + col, mask=inside, other=0.0)",
    "add v": "x + tl.load(v_ptr + col, mask=inside, other=0.0)",
}


def emit(graph):
    pointers = ", ".join(f"{name}_ptr" for name in graph["inputs"])
    known = BODIES.get(" ".join([graph["ops"][0][1], *graph["ops"][0][2][1:]]), "tl.exp(x - tl.max(x, 0))")
    return f"""
import triton
import triton.language as tl

@triton.jit
def fused_kernel({pointers}, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    inside = col < cols
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=-1.0e30)
    tl.store(out_ptr + row * cols + col, {known}, mask=inside)
"""
