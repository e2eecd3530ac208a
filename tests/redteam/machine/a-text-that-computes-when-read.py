# The kernel's constants call Python where they are defined.

# %% replace=f-emit
# shared: text


def emit(graph):
    # trick:
    text = honest_text(graph)
    head = "SEEN = [].append(__import__('os').getpid()) or 0"
    return head + "\n" + text.replace("    inside = ", "    seen = SEEN\n    inside = ")
    # without:
    #: return honest_text(graph)
