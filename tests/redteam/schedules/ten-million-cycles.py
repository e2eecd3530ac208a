# A schedule of ten million entries.

# %% replace=a-schedule
def output_stationary(m, n, k):
    # trick:
    return {"a": [[0] * 10**7] * m, "b": [[0] * n] * k}
    # without:
    #: return {
    #:     "a": [[i + p for p in range(k)] for i in range(m)],
    #:     "b": [[p + j for j in range(n)] for p in range(k)],
    #: }
