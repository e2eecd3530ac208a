def honest_text(graph):
    """Return the source of `fused_kernel`, which computes the graph's output."""
    texts = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "max": "tl.maximum({}, {})",
        "relu": "tl.maximum({}, 0.0)",
        "exp": "tl.exp({})",
        "row_sum": "tl.sum(tl.where(inside, {}, 0.0), 0)",
        "row_max": 'tl.max(tl.where(inside, {}, -float("inf")), 0)',
    }
    pointers = ", ".join(f"{name}_ptr" for name in graph["inputs"])
    lines = [
        "import triton",
        "import triton.language as tl",
        "",
        "",
        "@triton.jit",
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
