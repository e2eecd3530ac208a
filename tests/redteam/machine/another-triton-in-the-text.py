# The text binds the name triton to a module of its own choice.

# %% replace=f-emit
# shared: text


def emit(graph):
    # trick:
    return honest_text(graph).replace("import triton\n", "import subprocess as triton\n")
    # without:
    #: return honest_text(graph)
