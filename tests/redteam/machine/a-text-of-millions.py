# A text of three million characters.

# %% replace=f-emit
# shared: text


def emit(graph):
    # trick:
    return honest_text(graph) + "#" * 3_000_000
    # without:
    #: return honest_text(graph)
