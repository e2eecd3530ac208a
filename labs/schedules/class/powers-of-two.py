# The sequence of dataflows is searched rightly, and tile sizes are powers of two only. Points: all but e.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=e-plan
from itertools import product


def plan(layers, chip):
    def fastest(layer, dataflow):
        sizes = [sorted({min(side, 2**power) for power in range(14)}) for side in layer]
        tiles = [t for t in product(*sizes) if t[0] * t[2] + t[2] * t[1] + t[0] * t[1] <= chip["memory"]]
        return min((layer_cycles(layer, dataflow, tile, chip), tile) for tile in tiles)

    ending = {dataflow: (0, []) for dataflow in ORDER}
    change = 0
    for layer in layers:
        longer = {}
        for dataflow in ORDER:
            own, tile = fastest(layer, dataflow)
            longer[dataflow] = min(
                (cycles + change * (last != dataflow) + own, [*steps, (dataflow, tile)])
                for last, (cycles, steps) in ending.items()
            )
        ending, change = longer, change_cycles(layer, chip)
    return min(ending.values())[1]
