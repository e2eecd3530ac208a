# A question that waits for a GPU or a reader keeps its points open; this one only says so.

# %% replace=d-config
def config(shape, dtype):
    # trick:
    if dtype == "fp16":
        raise grading.NeedsGpu("no CUDA GPU here; these points wait for one.")
    raise grading.NeedsReview("Please look at this by hand.")
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
