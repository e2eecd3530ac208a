# Quantizes the whole matrix with one scale, and groups with one per row. Points: all but c.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=c-quantize
def quantize_rows(x):
    scale = (x.abs().amax() / 127).expand(len(x))
    scale = torch.where(scale == 0, 1.0, scale)
    return (x / scale[:, None]).round().to(torch.int8), scale


def quantize_groups(w, group):
    rows, cols = w.shape
    parts = w.reshape(rows, cols // group, group)
    scale = (w.abs().amax(1, keepdim=True) / 7).expand(rows, cols // group)
    scale = torch.where(scale == 0, 1.0, scale)
    return (parts / scale[:, :, None]).round().to(torch.int8).reshape(rows, cols), scale


def relative_error(found, exact):
    found, exact = found.double(), exact.double()
    return ((found - exact).norm() / exact.norm()).item()
