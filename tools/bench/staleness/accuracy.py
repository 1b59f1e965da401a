#!/usr/bin/env python3
"""Trains in virtual time with each remedy and each number of workers, and prints the accuracy.

tools/bench/learning starts it, and its --help tells of the flags.
"""

import argparse
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
sys.path[:0] = [os.path.join(ROOT, "tools", "plotting"), os.path.join(ROOT, "tools", "bench", "harness")]
# pylint: disable=wrong-import-position
import picture  # noqa: E402
from counted import Counted  # noqa: E402
from results import Results  # noqa: E402

LINES = (
    "sync,backup,async+none,async+discount,async+gap-aware,async+ordered-momentum,async+auto,ssp+auto,bounded+auto,"
    "local:8"
)
SGD = ["--learning-rate=0.03", "--momentum=0.9"]
MODELS = {
    "lenet": SGD,
    "resnet18": [*SGD, "--batches=500"],
    "transformer": ["--optimizer=adam", "--learning-rate=0.001", "--batches=3000"],
}


def flags_of(line):
    """Returns the flags of a line: "MODE", "MODE+RULE+RULE", or "local:STEPS"."""
    mode, *rules = line.split("+")
    if mode.startswith("local:"):
        return ["--mode=sync", f"--local-steps={mode.removeprefix('local:')}"]
    flags = [f"--mode={mode}"]
    if "discount" in rules:
        rules.remove("discount")
        flags.append("--discount-stale")
        rules = rules or ["none"]
    return flags + ([f"--staleness-rules={','.join(rules)}"] if rules else [])


def run(program, flags):
    """Returns the line that the program printed."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run([program, *flags], env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"learning: {program} {' '.join(flags)} failed:\n{ended.stderr}")
    return ended.stdout.splitlines()[-1]


def fields_of(line):
    """Returns the fields of a line that the program printed."""
    fields, _, ended = line.partition(" ended: ")
    return {**dict(field.split("=", 1) for field in fields.split(" ")), "ended": ended}


def spread(runs):
    """Returns mean, least and most accuracy in percent."""
    accuracies = [100 * float(run["accuracy"]) for run in runs]
    return statistics.mean(accuracies), min(accuracies), max(accuracies)


def all_flags(arguments):
    """Returns {(line, workers): the flags of its runs}, where (None, 1) is one process."""
    common = [f"--model={arguments.model}", *MODELS[arguments.model], *arguments.flags]
    cells = {(None, 1): ["--mode=sync"]}
    for line in arguments.lines:
        for workers in arguments.workers:
            if workers > 1:
                cells[line, workers] = [*flags_of(line), f"--workers={workers}"]
    seeds = range(1, arguments.seeds + 1)
    return {cell: [[*common, *flags, f"--seed={seed}"] for seed in seeds] for cell, flags in cells.items()}


def table(arguments, cells):
    """Returns the accuracy in percent, its distance to one process, and the mean staleness of asynchronous lines."""
    baseline = spread(cells[None, 1])[0]
    counts = [workers for workers in arguments.workers if workers > 1]
    rows = ["| | " + " | ".join(f"{workers} workers" for workers in counts) + " |", "|---" * (len(counts) + 1) + "|"]
    for line in arguments.lines:
        texts = []
        for workers in counts:
            runs = cells[line, workers]
            mean = spread(runs)[0]
            stale = statistics.mean(float(run["staleness"]) for run in runs)
            ended = sum(bool(run["ended"]) for run in runs)
            texts.append(f"{mean:.2f} ({mean - baseline:+.2f})" + (f", staleness {stale:.1f}" if stale else "")
                         + (f", {ended} ended early" if ended else ""))
        rows.append(f"| {line} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


def numbers(text):
    return [int(number) for number in text.split(",")]


def names(text):
    return text.split(",")


def parse():
    parser = argparse.ArgumentParser(prog="tools/bench/learning", allow_abbrev=False)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--model", choices=sorted(MODELS), default="lenet")
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lines", type=names, default=names(LINES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results")
    parser.add_argument("--picture")
    parser.add_argument("flags", nargs="*", help="flags of the program, after --")
    return parser.parse_args()


def main():
    arguments = parse()
    counted = Counted()
    made = Results(lambda flags: run(arguments.program, flags), arguments.results, counted.line)
    wanted = all_flags(arguments)
    runs = [flags for cell in wanted.values() for flags in cell]
    counted.total = made.missing(runs)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(made.make, runs))
    cells = {cell: [fields_of(made.make(flags)) for flags in of_cell] for cell, of_cell in wanted.items()}
    baseline, least, most = spread(cells[None, 1])
    seeds = "1 seed" if arguments.seeds == 1 else f"{arguments.seeds} seeds"
    title = f"{arguments.model}, {seeds}: test accuracy by workers"
    print(f"{title}. One process: {baseline:.2f} % ({least:.2f} to {most:.2f}); in brackets the points off it.\n")
    print(table(arguments, cells))
    if arguments.picture:
        lines = {line: {w: spread(cells[line, w] if w > 1 else cells[None, 1]) for w in arguments.workers}
                 for line in arguments.lines}
        with open(arguments.picture, "w", encoding="utf-8") as file:
            file.write(picture.draw(title, arguments.workers, lines, baseline))


if __name__ == "__main__":
    main()
