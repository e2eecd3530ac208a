# The change that saves the most bytes is made, again and again, until none saves any. Points: all but d.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=d-fuse
def fuse(graph):
    ops = {result: (kind, arguments) for result, kind, arguments in graph["ops"]}
    users = {name: [one for one in ops if name in ops[one][1]] for name in ops}
    stored = set(ops)
    size = {name: rows * cols for name, (rows, cols) in shapes_of(graph).items()}

    def groups_of(stored):
        home = {}
        for name in reversed(ops):
            homes = {name} if name in stored else {home.get(user) for user in users[name]}
            if len(homes) != 1 or (name in graph["outputs"] and name not in stored):
                return None
            home[name] = homes.pop()
        return [[one for one in ops if home[one] == name] for name in ops if name in stored]

    def legal(groups):
        for members in groups:
            reads = {name for one in members for name in ops[one][1]} - set(members)
            products = [one for one in members if ops[one][0] == "matmul"]
            if len(reads) > 4 or len(products) > 1:
                return False
            if products and (set(ops[products[0]][1]) - reads or any(ops[one][0].startswith("row") for one in members)):
                return False
        return True

    def cost(groups):
        total = 0
        for members in groups:
            reads = {name for one in members for name in ops[one][1]} - set(members)
            total += sum(size[name] for name in reads) + size[members[-1]]
        return total

    while True:
        best = cost(groups_of(stored)), None
        for name in ops:
            groups = groups_of(stored - {name}) if name in stored else None
            if groups and legal(groups) and cost(groups) < best[0]:
                best = cost(groups), name
        if best[1] is None:
            return groups_of(stored)
        stored.discard(best[1])
