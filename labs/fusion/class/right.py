# Everything answered, in the lab's own way. Points: all; what needs a GPU or a reader waits.

# %% solve=*

# %% replace=g-why
With 8 warps a thread holds 32 numbers and gets 64 registers; with 4 it holds 64 and gets 126; with 2 it holds 128 and
gets 231. With 1 warp it would hold 256, more than the 255 registers there are, so 876 bytes are spilled to local
memory, which is DRAM behind the caches: bytes that nobody counted. Many warps leave a thread less than 16 bytes per load.
