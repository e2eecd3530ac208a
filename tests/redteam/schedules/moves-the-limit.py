# The limit and the count of cycles are changed in the package, for a plan that is slow.

# %% replace=e-plan
def plan(layers, chip):
    # trick:
    from mlsys.grading.replays import network_plan

    network_plan.MAX_CYCLES_RATIO = 10.0**9
    network_plan.plan_cycles = lambda plan, layers, chip: 1
    network_plan.best_cycles = lambda layers, chip: 10**9
    chip["bandwidth"] = 10**9
    return [("ws", (1, 1, 1)) for layer in layers]
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
