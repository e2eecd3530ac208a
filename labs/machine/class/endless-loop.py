# The search of the challenge goes on until the plan is lower than the lower bound, which no plan is. Points: all but challenge.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=challenge-plan
def perfect_plan(buffers):
    """Return offsets of a plan whose height is the lower bound."""
    import random

    chance = random.Random(0)
    count, bound = len(buffers), lower_bound(buffers)
    meets = [
        [other for other in range(count) if other != one and buffers[other][0] < upper and lower < buffers[other][1]]
        for one, (lower, upper, _) in enumerate(buffers)
    ]

    def placed(order):
        """Offsets in an order, and how far all buffers together reach above the lower bound."""
        offsets, above = [None] * count, 0
        for one in order:
            size, at = buffers[one][2], 0
            met = [
                (offsets[other], offsets[other] + buffers[other][2])
                for other in meets[one]
                if offsets[other] is not None
            ]
            for begin, end in sorted(met):
                if begin - at >= size:
                    break
                at = max(at, end)
            offsets[one] = at
            above += max(0, at + size - bound)
        return offsets, above

    def move(order):
        order.insert(chance.randrange(count), order.pop(chance.randrange(count)))

    order = sorted(range(count), key=lambda one: buffers[one][0] - buffers[one][1])
    planned, waste = placed(order)
    best, stuck = (waste, order), 0
    while height(buffers, planned) >= bound:
        changed = order[:]
        for _ in range(chance.choice((1, 1, 2))):
            move(changed)
        found, above = placed(changed)
        stuck = 0 if above < waste else stuck + 1
        if above <= waste:
            order, waste, planned = changed, above, found
        best = min(best, (waste, order))
        if stuck > 400:
            stuck, order = 0, list(chance.choice((order, best[1])))
            for _ in range(3):
                move(order)
            planned, waste = placed(order)
    return list(planned)
