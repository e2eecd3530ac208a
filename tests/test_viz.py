import subprocess
import sys

from mlsys import viz


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_lines_are_readable_on_white():
    """WCAG 2.1 asks for a contrast of 4.5:1 for text."""
    for name, color in viz.COLORS.items():
        if name.endswith("Line") or name == "primary":
            assert 1.05 / (luminance(color) + 0.05) >= 4.5, name


def test_setup_plot_gives_figure_axes_colors_and_pyplot():
    fig, ax, colors, plt = viz.setup_plot(figsize=(3, 2))
    assert list(fig.get_size_inches()) == [3, 2]
    assert ax.figure is fig
    assert colors["primary"].startswith("#")
    plt.close(fig)


def test_import_mlsys_loads_neither_matplotlib_nor_torch():
    code = "import sys, mlsys; print([m for m in ('matplotlib', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
