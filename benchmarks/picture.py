"""The picture of docs/performance.md: how many times as fast as eager Chainer every column is, cell by cell."""
import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

import environments  # noqa: E402
import workloads  # noqa: E402

LOOKS = {
    "dy2static, c": ("o", "#c1272d"), "dy2static, numpy": ("o", "#e89a9c"), "PyTorch": ("s", "#9aa5b1"),
    "torch.compile": ("s", "#52606d"), "JAX": ("^", "#1f6feb"), "TensorFlow": ("D", "#f0b849"), "TensorFlow, XLA": ("D", "#b7791f"),
    "Paddle": ("v", "#9fd3a8"), "Paddle, to_static": ("v", "#2f855a"), "Chainer, static_graph": ("x", "#7b5ea7"),
}


def draw(results, path, threads="1"):
    """Write the SVG; the same figures give the same file."""
    columns = results["threads"].get(threads, {})
    cells = [cell for cell in workloads.CELLS if "us" in columns.get(environments.BASE.title, {}).get(cell, {})]
    plt.rcParams.update({"svg.hashsalt": "dy2static", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(9, 1 + 0.24 * max(len(cells), 4)))
    for title, (marker, colour) in LOOKS.items():
        ratios = [columns.get(title, {}).get(cell, {}).get("ratio") for cell in cells]
        found = [(1 / ratio, -i) for i, ratio in enumerate(ratios) if ratio]
        if found:
            axes.scatter(*zip(*found), marker=marker, color=colour, label=title, s=34 if title == "dy2static, c" else 22,
                         zorder=3 if title.startswith("dy2static") else 2)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks([-i for i in range(len(cells))])
    axes.set_yticklabels(cells)
    axes.grid(axis="both", linewidth=0.3)
    axes.set_xlabel(f"times as fast as eager Chainer ({threads} thread{'' if threads == '1' else 's'}; to the right is faster)")
    if cells:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(str(path), bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
