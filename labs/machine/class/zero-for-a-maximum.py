# Beyond the row a maximum sees 0, which is the largest number of a row of negative ones. Points: all but f.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=f-emit
def emit(graph):
    """Return the source of `fused_kernel`, which computes the graph's output."""
    texts = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "max": "tl.maximum({0}, {1})",
        "relu": "tl.maximum({}, 0.0)",
        "exp": "tl.exp({})",
        "row_sum": "tl.sum(tl.where(inside, {}, 0.0), 0)",
        "row_max": 'tl.max(tl.where(inside, {}, 0.0), 0)',
    }
    pointers = ", ".join(f"{name}_ptr" for name in graph["inputs"])
    lines = [
        "import triton\nimport triton.language as tl\n\n\n@triton.jit",
        f"def fused_kernel({pointers}, out_ptr, cols, BLOCK: tl.constexpr):",
        "    row = tl.program_id(0)",
        "    col = tl.arange(0, BLOCK)",
        "    inside = col < cols",
    ]
    for name, (rows, cols) in graph["inputs"].items():
        place = "row" if cols == 1 else "col" if rows == 1 else "row * cols + col"
        mask = "" if cols == 1 else ", mask=inside, other=0.0"
        lines.append(f"    t_{name} = tl.load({name}_ptr + {place}{mask})")
    for result, kind, arguments in graph["ops"]:
        text = texts[kind].format(*(f"t_{name}" for name in arguments))
        lines.append(f"    t_{result} = {text}")
    (output,) = graph["outputs"]
    if shapes_of(graph)[output][1] == 1:
        lines.append(f"    tl.store(out_ptr + row, t_{output})")
    else:
        lines.append(f"    tl.store(out_ptr + row * cols + col, t_{output}, mask=inside)")
    return "\n".join(lines) + "\n"
