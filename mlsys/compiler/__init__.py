"""A compiler from a graph of operations to Triton, one stage a module, each of which prints what it gives.

- import (`import_onnx`, `import_torch`) gives a `Graph` of ONNX's operations; `rules` says what each computes
- optimize (`optimize`) gives a graph without what is constant or unused
- fuse (`fuse`) gives a `Program`: kernels, each one expression
- schedule (`schedule`) adds tiles and warps, memory (`memory`) the places of intermediate tensors
- lower (`lower`) adds the Triton text, which `run` launches

A stage of one's own replaces another: `compile(model, inputs, stages={"fuse": own})`, where `own` gets what the stage
before gives and returns what the stage itself would. `compiled.stages` has the printed forms.
"""

from mlsys.compiler.ir.graph import BadGraph, UnsupportedOp
from mlsys.compiler.pipeline import OPS, Compiled, compile

__all__ = ["OPS", "BadGraph", "Compiled", "UnsupportedOp", "compile"]
