#!/usr/bin/env python3
"""Trains with every learning rate, momentum, mode and seed, and shows which are best. tools/sweep starts it."""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from results import Results

SINGLE = "single"  # one process, without a server
ALLREDUCE = "allreduce"  # no server: its process is one more that trains
LOCAL = "local:"  # before the number of local steps


def launch(launcher, ranks):
    """Returns the words before a program that has so many ranks."""
    if launcher == "srun":
        return ["srun", "--mpi=pmix", f"--ntasks={ranks}"]
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def command(arguments, flags, record):
    """Returns the command line of a run. Its flags begin with its mode."""
    mode, *rest = flags
    train = [arguments.program, *rest, f"--json={record}", "--progress=off"]
    if mode == SINGLE:
        return [*train, "--role=single"]
    if mode == ALLREDUCE:
        choice = ["--role=allreduce"]
    elif mode.startswith(LOCAL):
        choice = ["--mode=sync", f"--local-steps={mode.removeprefix(LOCAL)}"]
    else:
        choice = [f"--mode={mode}"]
    return [*launch(arguments.launcher, arguments.workers + 1), *train, *choice]


def result_of(record, status, errors):
    """Returns what came of a run: its test, or why there is none."""
    result = {"status": status}
    lines = [json.loads(line) for line in record.read().splitlines()]
    steps = [line for line in lines if "samples" in line]
    tests = [line for line in lines if "test_accuracy" in line]
    if steps:
        result["seconds"] = max(line["seconds"] for line in steps)
    if tests:
        result["accuracy"], result["loss"] = tests[-1]["test_accuracy"], tests[-1]["test_loss"]
    else:
        result["error"] = reason_in(errors)
    return result


def reason_in(output):
    """Returns the sentence with which a program ended, out of what it printed."""
    lines = output.strip().splitlines() or ["it said nothing"]
    said = [line for line in lines if line.startswith("sluice_train: ")] or lines
    return said[-1][:300]


def run(arguments, flags):
    """Makes a run, and returns its result as JSON."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.NamedTemporaryFile("r", suffix=".json", encoding="utf-8") as record:
        ended = subprocess.run(command(arguments, flags, record.name), env=environment, capture_output=True, text=True,
                               check=False)
        return json.dumps(result_of(record, ended.returncode, ended.stderr or ended.stdout))


def cells_of(arguments):
    """Returns {(mode, learning rate, momentum): the flags of its runs, one for each seed}."""
    cells = {}
    for mode, rate, momentum in itertools.product(arguments.modes, arguments.learning_rates, arguments.momenta):
        fixed = [mode, f"--learning-rate={rate:g}", f"--momentum={momentum:g}", *arguments.flags]
        if mode not in (SINGLE, ALLREDUCE):
            fixed.append(f"--workers={arguments.workers}")
        cells[mode, rate, momentum] = [[*fixed, f"--seed={seed}"] for seed in range(1, arguments.seeds + 1)]
    return cells


def numbers(values, form, scale=1):
    """Returns "mean" or "mean (least to most)" of those that are known."""
    known = [scale * value for value in values if value is not None]
    if not known:
        return "-"
    mean = format(statistics.mean(known), form)
    return mean if len(known) == 1 else f"{mean} ({min(known):{form}} to {max(known):{form}})"


def mean_accuracy(runs):
    """Returns the mean over all seeds; a run that failed counts as 0."""
    return statistics.mean(run.get("accuracy", 0) for run in runs)


def table(results):
    """Returns the table as Markdown. The best row of each mode is bold."""
    best = {}
    for cell, runs in results.items():
        if cell[0] not in best or mean_accuracy(runs) > mean_accuracy(results[best[cell[0]]]):
            best[cell[0]] = cell
    rows = ["| mode | learning rate | momentum | test accuracy, % | test loss | seconds | failed |",
            "|---|---|---|---|---|---|---|"]
    for cell, runs in results.items():
        failed = [run for run in runs if "accuracy" not in run]
        texts = [cell[0], f"{cell[1]:g}", f"{cell[2]:g}", numbers([run.get("accuracy") for run in runs], ".2f", 100),
                 numbers([run.get("loss") for run in runs], ".4f"), numbers([run.get("seconds") for run in runs], ".0f"),
                 str(len(failed)) if failed else ""]
        if best[cell[0]] == cell:
            texts = [f"**{text}**" if text else "" for text in texts]
        rows.append("| " + " | ".join(texts) + " |")
    reasons = sorted({run["error"] for runs in results.values() for run in runs if "error" in run})
    return "\n".join(rows + [""] + reasons if reasons else rows)


def draw(results, path):
    """Draws test accuracy and loss against the learning rate: a column for each mode, a line for each momentum.

    A cross on the lower edge is a run that failed.
    """
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    modes = list(dict.fromkeys(mode for mode, _, _ in results))
    momenta = sorted({momentum for _, _, momentum in results})
    figure, axes = pyplot.subplots(2, len(modes), figsize=(1 + 3.2 * len(modes), 6), squeeze=False, sharex=True,
                                   sharey="row")
    for column, mode in enumerate(modes):
        for row, (field, scale) in enumerate((("accuracy", 100), ("loss", 1))):
            for momentum in momenta:
                points = []
                for rate in sorted({rate for _, rate, _ in results}):
                    values = [scale * run[field] for run in results[mode, rate, momentum] if run.get(field) is not None]
                    if values:
                        mean = statistics.mean(values)
                        points.append((rate, mean, mean - min(values), max(values) - mean))
                    if row == 0 and any("accuracy" not in run for run in results[mode, rate, momentum]):
                        axes[row][column].plot(rate, 0, "x", color="black")
                if points:
                    rates, means, below, above = zip(*points)
                    axes[row][column].errorbar(rates, means, yerr=(below, above), marker="o", capsize=3,
                                               label=f"momentum {momentum:g}")
            axes[row][column].set_xscale("log")
            axes[row][column].grid(alpha=0.3)
        axes[0][column].set_title(mode)
        axes[1][column].set_xlabel("learning rate")
    axes[0][0].set_ylabel("test accuracy, %")
    axes[1][0].set_ylabel("test loss")
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(path)


def words(text):
    return text.split(",")


def decimals(text):
    return [float(number) for number in text.split(",")]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected a number from 1 on")
    return number


def parse():
    parser = argparse.ArgumentParser(prog="tools/sweep", allow_abbrev=False, add_help=False)
    parser.add_argument("--program", required=True)
    parser.add_argument("--modes", type=words, default=words("single,sync,async"))
    parser.add_argument("--learning-rates", type=decimals, default=decimals("0.01,0.03,0.1"))
    parser.add_argument("--momenta", type=decimals, default=decimals("0,0.9"))
    parser.add_argument("--workers", type=positive, default=3)
    parser.add_argument("--seeds", type=positive, default=1)
    parser.add_argument("--jobs", type=positive, default=1)
    parser.add_argument("--launcher", choices=("mpirun", "srun"), default="mpirun")
    parser.add_argument("--results")
    parser.add_argument("--picture")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("flags", nargs="*")
    return parser.parse_args()


class Countdown:
    """Puts before a result which of the runs it is, and how long the others will take."""

    def __init__(self):
        self.runs = 0  # to make
        self._made = 0
        self._began = time.monotonic()

    def __call__(self, line):
        self._made += 1
        left = (time.monotonic() - self._began) / self._made * (self.runs - self._made)
        return f"sweep: run {self._made} of {self.runs}, {left / 60:.0f} min left: {line}"


def main():
    arguments = parse()
    countdown = Countdown()
    made = Results(lambda flags: run(arguments, flags), arguments.results, None if arguments.quiet else countdown)
    cells = cells_of(arguments)
    runs = [flags for runs in cells.values() for flags in runs]
    countdown.runs = made.missing(runs)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(made.make, runs))
    results = {cell: [json.loads(made.make(flags)) for flags in runs] for cell, runs in cells.items()}
    print(table(results))
    if arguments.picture:
        draw(results, arguments.picture)
    return 0 if any("accuracy" in run for runs in results.values() for run in runs) else 1


if __name__ == "__main__":
    raise SystemExit(main())
