# The fastest dataflow for each layer by itself, whatever the changes between layers cost. Points: all but e.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=e-plan
def plan(layers, chip):
    def fastest(layer, dataflow):
        extent = dict(zip("mnk", layer))
        x, y, z = ORDER[dataflow]
        found = []
        for tile_x in {-(-extent[x] // parts) for parts in range(1, extent[x] + 1)}:
            for tile_z in {1, extent[z]}:
                tile_y = min(extent[y], (chip["memory"] - tile_x * tile_z) // (tile_x + tile_z))
                if tile_y >= 1:
                    sizes = {x: tile_x, y: tile_y, z: tile_z}
                    tile = (sizes["m"], sizes["n"], sizes["k"])
                    found.append((layer_cycles(layer, dataflow, tile, chip), tile))
        return min(found)

    steps = []
    for layer in layers:
        dataflow = min(ORDER, key=lambda x: fastest(layer, x)[0])
        steps.append((dataflow, fastest(layer, dataflow)[1]))
    return steps
