"""`mlsys roofline`: measure the ceilings of this machine, print its roofline and save it as a picture."""

import argparse
from pathlib import Path

from mlsys import ops, viz
from mlsys.bench.table import ceilings_table
from mlsys.errors import UserError
from mlsys.measure.ceilings import measure_ceilings
from mlsys.measure.device import detect_device
from mlsys.measure.gpu_jobs import refuse_shared_gpu
from mlsys.roofline import Roofline


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the picture's path, and whether to measure beside another job."""
    parser.add_argument("--out", type=Path, default=Path("roofline.png"), help="picture to write (PNG, SVG or PDF)")
    parser.add_argument("--shared", action="store_true", help="measure although another job uses the GPU")


def run(args: argparse.Namespace) -> int:
    """Measure the ceilings, print a table and draw the roofline."""
    check_writable(args.out)
    device = detect_device()
    if device.kind == "gpu" and not args.shared:
        refuse_shared_gpu()
    ceilings = measure_ceilings(device)
    roofline = Roofline.measured(ceilings)
    print(f"{ceilings.device.name}\n{ceilings_table(ceilings)}")
    print("\nRidge points of the measured roofs:")
    for precision in ceilings.matmul:
        ridge = ceilings.product_roof(precision) / ceilings.memory_roof
        print(f"  {precision:<22}{ridge.m_as('flop/byte'):8.1f} FLOP/byte")
    print("\nWhat these roofs allow if each tensor moves once:")
    shown = course_ops()
    for op in shown:
        rate = roofline.attainable(op).m_as("TFLOP/s")
        print(f"  {op.name:<22}{op.intensity.m:8.2f} FLOP/byte  {rate:9.4f} TFLOP/s  {roofline.bound(op)}-bound")
    save_picture(roofline, shown, args.out)
    print(f"\nPicture: {args.out}")
    return 0


def course_ops() -> list[ops.Op]:
    """Return the operations that the course uses again and again, in fp32 so that they run on every device."""
    rows, columns = 8192, 4096
    return [
        ops.elementwise(elements=rows * columns, inputs=2, dtype="fp32").named("vector add"),
        ops.softmax(rows=rows, cols=columns, dtype="fp32").named("row softmax"),
        ops.layernorm(rows=rows, cols=columns, dtype="fp32").named("layernorm"),
        ops.embedding_bag(bags=8192, bag_size=32, dim=64, dtype="fp32").named("embedding"),
        ops.linear(batch=32, d_in=4096, d_out=4096, dtype="fp32").named("dense, batch 32"),
        ops.matmul(m=4096, n=4096, k=4096, dtype="fp32").named("matmul 4096"),
    ]


def check_writable(picture: Path) -> None:
    """Refuse a path that cannot be written before anything is measured."""
    allowed = (".png", ".svg", ".pdf")
    if picture.suffix not in allowed:
        raise UserError(f"cannot draw {picture}: the ending is '{picture.suffix}'; use one of {', '.join(allowed)}")
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        with picture.open("ab"):
            pass
    except OSError as error:
        raise UserError(f"cannot write {picture}: {error.strerror}; give another path with --out") from error


def save_picture(roofline: Roofline, shown: list[ops.Op], picture: Path) -> None:
    """Draw the roofline with `shown` on it."""
    import matplotlib as mpl

    mpl.use("Agg")  # no window: this runs on servers
    fig, ax, _, _ = viz.setup_plot()
    roofline.plot(shown, ax)
    fig.savefig(picture)
