"""Draws the comparison of allreduce and parameter servers."""

import statistics

COLORS = {
    "allreduce (MPI)": "black", "allreduce (gloo)": "gray", "sync": "tab:blue", "backup": "tab:cyan",
    "bounded": "tab:green", "ssp": "tab:olive", "async": "tab:red", "local steps (8)": "tab:purple",
}


def at(points, place):
    """Returns the last loss of a curve at or before a place; `points` are (place, loss), in order."""
    known = [loss for position, loss in points if position <= place]
    return known[-1] if known else None


def band(curves, places):
    """Returns (place, median, least, most) at each place that all curves reach."""
    rows = []
    for place in places:
        losses = [at(curve, place) for curve in curves if curve[-1][0] >= 0.97 * place]
        if len(losses) == len(curves) and None not in losses:
            rows.append((place, statistics.median(losses), min(losses), max(losses)))
    return rows


def draw_band(axes, curves, color, label):
    end = max(curve[-1][0] for curve in curves)
    rows = band(curves, [end * i / 60 for i in range(1, 61)])
    if rows:
        places, middle, least, most = zip(*rows)
        axes.plot(places, middle, color=color, label=label, linewidth=1.4)
        axes.fill_between(places, least, most, color=color, alpha=0.15, linewidth=0)


def draw_bars(axes, values, names, bounds):
    """Draws a bar for each method, from its median, with a line from the least to the most."""
    for place, (name, of_method) in enumerate(zip(names, values)):
        if of_method:
            axes.barh(place, statistics.median(of_method), color=COLORS[name], alpha=0.8)
            axes.plot((min(of_method), max(of_method)), (place, place), color="black", linewidth=1)
        else:
            axes.text(0, place, " not in every run", va="center", fontsize=7)
        if bounds.get(name):
            axes.plot((bounds[name], bounds[name]), (place - 0.45, place + 0.45), color="orange", linewidth=2)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)


def draw(columns, methods, path, target):
    """Draws a column for each entry of `columns`: title -> method -> runs.

    A run is a dict with `seconds`, `samples` (those of the curve's points), `curve`, `rate` in samples/s, `reached`
    in seconds or None, and `bound`, the most samples/s that link and pace permit, or None.
    """
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    figure, axes = pyplot.subplots(4, len(columns), figsize=(1.5 + 3.4 * len(columns), 13), squeeze=False)
    for place, (title, cells) in enumerate(columns.items()):
        names = [name for name in methods if cells.get(name)]
        for name in names:
            runs = cells[name]
            losses = [[point[2] for point in run["curve"]] for run in runs]
            seconds = [[point[0] for point in run["curve"]] for run in runs]
            samples = [[count / 1000 for count in run["samples"]] for run in runs]
            draw_band(axes[0][place], [list(zip(*pair)) for pair in zip(seconds, losses)], COLORS[name], name)
            draw_band(axes[1][place], [list(zip(*pair)) for pair in zip(samples, losses)], COLORS[name], name)
        for row in (0, 1):
            axes[row][place].set_yscale("log")
            axes[row][place].set_ylim(0.25, 2.4)
            axes[row][place].set_yticks([0.3, 0.5, 1, 2], ["0.3", "0.5", "1", "2"])
            axes[row][place].minorticks_off()
            axes[row][place].grid(alpha=0.3)
        bounds = {name: cells[name][0]["bound"] for name in names}
        draw_bars(axes[2][place], [[run["rate"] for run in cells[name]] for name in names], names, bounds)
        times = [[run["reached"] for run in cells[name]] for name in names]
        draw_bars(axes[3][place], [[] if None in of_method else of_method for of_method in times], names, {})
        axes[0][place].set_title(title)
        axes[0][place].set_xlabel("seconds")
        axes[1][place].set_xlabel("thousand samples that counted")
        axes[2][place].set_xlabel("samples/s (orange: the bound)")
        axes[3][place].set_xlabel(f"seconds to {100 * target:g} % test accuracy")
    axes[0][0].set_ylabel("test loss")
    axes[1][0].set_ylabel("test loss")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
