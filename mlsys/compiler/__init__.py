"""A compiler from a graph of operations to Triton, one stage a module, each of which prints what it gives.

- import (`mlsys.compiler.import_onnx`, `mlsys.compiler.import_torch`) gives a graph of ONNX's operations
- optimize (`mlsys.compiler.optimize`) drops from it what is constant or unused
- fuse (`mlsys.compiler.fuse`) gives a program: kernels, each one expression
- schedule (`mlsys.compiler.schedule`) adds tiles and warps, memory (`mlsys.compiler.memory`) the places of tensors
- lower (`mlsys.compiler.lower`) adds the Triton text, which is then launched

What each operation computes is in `mlsys.compiler.rules`, and what stages hand to each other in `mlsys.compiler.ir`.

A stage of your own replaces any but the import: `compile(model, inputs, stages={"fuse": own})`, where `own` gets what
the stage before gives and returns what the stage itself would. A pass of your own calls the stage as well:
`stages={"optimize": lambda graph: optimize(own_pass(graph))}`. `compiled.stages` has the printed forms.

`docs/compiler.md` says in which order to read the modules, and how to add an operation, a pass or a stage.
"""

from mlsys.compiler.ir.graph import BadGraph, UnsupportedOp
from mlsys.compiler.pipeline import OPS, Compiled, compile

__all__ = ["OPS", "BadGraph", "Compiled", "UnsupportedOp", "compile"]
