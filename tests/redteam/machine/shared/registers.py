def honest_registers(feed, rows, cols):
    """Return the registers (weight, spare, x, swap, sum) of each PE at the end of each cycle."""
    old = [[(0, 0, 0, 0, 0)] * cols for _ in range(rows)]
    history = []
    for enters in feed:
        new = []
        for r in range(rows):
            line = []
            for c in range(cols):
                x, swap = old[r][c - 1][2:4] if c else (enters["x"][r], enters["swap"][r])
                sum_above = old[r - 1][c][4] if r else 0
                weight_above = None
                if enters["weights"] is not None:
                    weight_above = old[r - 1][c][1] if r else enters["weights"][c]
                line.append(pe_step(*old[r][c][:2], x, swap, sum_above, weight_above))
            new.append(line)
        history.append(new)
        old = new
    return history
