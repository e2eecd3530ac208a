def honest_offsets(buffers):
    """Return offsets of a plan that wastes little memory."""
    import random

    chance = random.Random(0)
    bound = lower_bound(buffers)

    def above(offsets):
        """How far all buffers together reach above the lower bound."""
        return sum(max(0, offset + size - bound) for offset, (_, _, size) in zip(offsets, buffers, strict=True))

    keys = [
        lambda one: -buffers[one][2],
        lambda one: buffers[one][0] - buffers[one][1],
        lambda one: -buffers[one][2] * (buffers[one][1] - buffers[one][0]),
    ]
    orders = [sorted(range(len(buffers)), key=key) for key in keys]
    order = min(orders, key=lambda order: above(place(buffers, order)))
    best = place(buffers, order)
    waste = above(best)
    for _ in range(2000):
        if not waste:
            break
        changed = order[:]
        changed.insert(chance.randrange(len(order)), changed.pop(chance.randrange(len(order))))
        offsets = place(buffers, changed)
        if above(offsets) <= waste:
            order, waste, best = changed, above(offsets), offsets
    return best
