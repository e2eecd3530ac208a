# Softmax as three steps of PyTorch and a kernel for the exponentials only, behind an object that is launched like a
# kernel. Its results are right in the notebook. Points: all but c and h.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.

# %% replace=c-kernel
@triton.jit
def exp_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < count, other=0.0)
    tl.store(y_ptr + index, tl.exp(x), mask=index < count)


class StepByStep:
    def __getitem__(self, grid):
        return self

    def __call__(self, x, y, rows, cols, *strides, ROWS, BLOCK, **options):
        shifted = (x.float() - x.float().max(1, keepdim=True).values).contiguous()
        powers = torch.empty_like(shifted)
        exp_kernel[(triton.cdiv(shifted.numel(), 1024),)](shifted, powers, shifted.numel(), BLOCK=1024)
        y.copy_(powers / powers.sum(1, keepdim=True))


softmax_kernel = StepByStep()
