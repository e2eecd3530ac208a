# Counts and packs 2:4 weights without their places, and keeps the larger of equal numbers that comes later. Points:
# all but h.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=h-sparse
def keep_two(group):
    return tuple(sorted(sorted(range(3, -1, -1), key=lambda place: -abs(group[place]))[:2]))


def pack_24(row):
    values, codes = [], []
    for start in range(0, len(row), 4):
        first, second = keep_two(row[start : start + 4])
        values += [row[start + first], row[start + second]]
        codes.append(TERM_PLACES_BITS)
    return values, [low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)]


def bytes_24(n, k, bits):
    return n * k * bits // 16
