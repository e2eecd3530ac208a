# The kernel with the channels last is PyTorch in a function with the kernel's name, without @triton.jit. Points: all
# but e, and f on a GPU.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=e-kernel
def stepping_kernel(x, f, bias, y, *sizes, STRIDE, PADDING, **constants):
    image, filters = x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2)
    result = torch.nn.functional.conv2d(image, filters, bias, stride=STRIDE, padding=PADDING)
    y.copy_(result.relu().permute(0, 2, 3, 1))
