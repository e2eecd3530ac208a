def honest_groups(graph):
    """Return the groups of operations that move the least bytes, in an order in which they can run."""
    from itertools import product

    ops = {result: (kind, arguments) for result, kind, arguments in graph["ops"]}
    users = {name: [result for result, (_, arguments) in ops.items() if name in arguments] for name in ops}
    bytes_of = {name: 4 * rows * cols for name, (rows, cols) in shapes_of(graph).items()}

    def cost(members, result):
        """Bytes of a group, or None if it breaks a rule."""
        reads = {name for one in members for name in ops[one][1]} - set(members)
        products = [one for one in members if ops[one][0] == "matmul"]
        if len(reads) > 4 or len(products) > 1:
            return None
        if products and not set(ops[products[0]][1]) <= reads:
            return None
        if products and any(ops[one][0].startswith("row_") for one in members):
            return None
        return sum(bytes_of[name] for name in reads) + bytes_of[result]

    best = None
    for choice in product((True, False), repeat=len(ops)):
        stored = dict(zip(ops, choice, strict=True))
        home = {}
        for name in reversed(ops):
            homes = {name} if stored[name] else {home.get(user) for user in users[name]}
            if len(homes) != 1 or (name in graph["outputs"] and not stored[name]):
                break
            home[name] = homes.pop()
        else:
            groups = [[one for one in ops if home[one] == name] for name in ops if stored[name]]
            costs = [cost(group, group[-1]) for group in groups]
            if None not in costs and (best is None or sum(costs) < best[0]):
                best = sum(costs), groups
    return best[1]
