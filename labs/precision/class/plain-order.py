# Takes the nibbles of a word in reverse order, in b and in the challenge. Points: all but b and the challenge.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=b-packing
def pack(weights):
    return sum((weights[one] + 8) << (4 * place) for place, one in enumerate(reversed([TERM_ORDER])))


def unpack(word):
    weights = [0] * 8
    for place, one in enumerate(reversed([TERM_ORDER])):
        weights[one] = (word >> (4 * place) & 15) - 8
    return weights

# %% replace=challenge-kernel
@triton.jit
def unpack_kernel(words_ptr, y_ptr, count, BLOCK: tl.constexpr):
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(words_ptr + w, mask=w < count, other=0)
    for i in tl.static_range(4):
        pair = ((words >> (12 - 4 * i)) & 0x000F000F) | 0x64006400
        lower = pair.to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
        upper = (pair >> 16).to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
        tl.store(y_ptr + 8 * w + TERM_LOWER_AT, lower, mask=w < count)
        tl.store(y_ptr + 8 * w + TERM_UPPER_AT, upper, mask=w < count)
