# A text that a careless reader needs a long time for: thousands of attributes in a row.

# %% replace=f-emit
# shared: text


def emit(graph):
    # trick:
    return honest_text(graph).replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK)" + ".T" * 3600)
    # without:
    #: return honest_text(graph)
