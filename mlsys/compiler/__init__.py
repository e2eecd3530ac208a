"""A compiler from a graph of operations to Triton, one stage a module, each of which prints what it gives.

- import (`import_onnx`, `import_torch`) gives a `mlsys.compiler.ir.graph.Graph` of
  `mlsys.compiler.ir.graph.Operation` as ONNX names them, and `mlsys.compiler.ir.graph.Tensor`.
- optimize (`optimize`) gives a graph without what is constant or unused.
- fuse (`fuse`) gives `Fused`: kernels, each one expression.
- schedule (`schedule`) gives `Schedule`: tiles and warps.
- memory (`memory`) gives `Plan`: places of the intermediate tensors.
- lower (`lower`) gives `Source`: Triton text.

An operation is a rule in `rules`: a function from inputs to an expression of one element. A stage of one's own replaces
another: `compile(model, inputs, stages={"fuse": own})`, where `own` takes what the stage before gives and returns what
the stage itself would. `compiled.stages` has each stage's printed form, and `compiled.source` the Triton text.
"""

from mlsys.compiler.ir.graph import BadGraph, UnsupportedOp
from mlsys.compiler.pipeline import OPS, Compiled, compile

__all__ = ["OPS", "BadGraph", "Compiled", "UnsupportedOp", "compile"]
