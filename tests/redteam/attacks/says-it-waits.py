# A question that waits for a GPU or a reader keeps its points open; this one only says so.

# %% replace=d-config
def config(shape, dtype):
    if dtype == "fp16":
        raise grading.NeedsGpu("no CUDA GPU here; these points wait for one.")
    raise grading.NeedsReview("Please look at this by hand.")
