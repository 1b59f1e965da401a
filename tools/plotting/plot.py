#!/usr/bin/env python3
"""Draws the records of runs. tools/plot starts it."""

import argparse
import json
import os
import sys

PARTS = ("compute", "encode", "push", "wait", "pull", "decode")
SERVER = "server"


def records_of(path):
    """Returns the lines of a record that sluice_train --json wrote."""
    with open(path, encoding="utf-8") as lines:
        records = []
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict) or "seconds" not in record:
                    raise ValueError
            except ValueError:
                sys.exit(f"plot: {path}: line {number} is no record of sluice_train --json: {line[:60].rstrip()}")
            records.append(record)
    if not records:
        sys.exit(f"plot: {path} is empty; expected a record of sluice_train --json")
    return records


def steps_of(records):
    return [record for record in records if "samples" in record]


def workers_of(records):
    return sorted({record["worker"] for record in steps_of(records)})


def speed_of(records):
    """Returns the samples a second of all workers together, without each worker's first line."""
    speed = 0
    for worker in workers_of(records):
        steps = [record for record in steps_of(records) if record["worker"] == worker]
        if len(steps) > 1:
            seconds = steps[-1]["seconds"] - steps[0]["seconds"]
            speed += sum(record["samples"] for record in steps[1:]) / seconds if seconds > 0 else 0
    return speed


def parts_of(path):
    """Returns {process: {part: seconds}} of the workers in a file that --trace wrote."""
    with open(path, encoding="utf-8") as file:
        text = file.read().rstrip().rstrip(",")
    try:
        events = json.loads(text if text.endswith("]") else text + "]")
    except ValueError as error:
        sys.exit(f"plot: {path} is no trace: {error}")
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    parts = {}
    for event in events:
        name = names.get(event.get("pid"), "")
        if event.get("ph") == "X" and event["name"] in PARTS and not name.startswith(SERVER):
            of_worker = parts.setdefault(name, dict.fromkeys(PARTS, 0))
            of_worker[event["name"]] += event["dur"] / 1e6
    return dict(sorted(parts.items()))


def label_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def draw_loss(axes, runs, field, label):
    """Draws the loss of each run's first worker, and each test as a star."""
    for path, records in runs.items():
        steps = [record for record in steps_of(records) if record["worker"] == min(workers_of(records))]
        line = axes.plot([record[field] for record in steps], [record["loss"] for record in steps],
                         label=label_of(path))[0]
        for record in records:
            if record.get("test_loss") is not None:
                axes.plot(record[field], record["test_loss"], marker="*", markersize=12, color=line.get_color())
                axes.annotate(f"{100 * record['test_accuracy']:.2f} %", (record[field], record["test_loss"]),
                              textcoords="offset points", xytext=(-6, 8), ha="right")
    axes.set_xlabel(label)
    axes.set_ylabel("loss (star: test)")
    axes.grid(alpha=0.3)
    axes.legend()


def draw_speed(axes, runs):
    """Draws images a second against workers, and the line of a perfect speed-up over the smallest run."""
    points = sorted((len(workers_of(records)), speed_of(records)) for records in runs.values())
    workers = [count for count, _ in points]
    axes.plot(workers, [speed for _, speed in points], "o")
    first, speed = points[0]
    axes.plot([first, max(workers)], [speed, speed * max(workers) / first], "--", color="grey", label="perfect")
    axes.set_xlabel("workers")
    axes.set_xticks(sorted(set(workers)))
    axes.set_ylabel("samples a second, all workers")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()


def draw_parts(axes, parts):
    """Draws the seconds of each part as a bar for each worker."""
    left = [0.0] * len(parts)
    for part in PARTS:
        seconds = [of_worker[part] for of_worker in parts.values()]
        axes.barh(list(parts), seconds, left=left, label=part)
        left = [so_far + more for so_far, more in zip(left, seconds)]
    axes.set_xlabel("seconds (parts that overlap are added)")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def draw(runs, traces, path):
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    panels = []
    if runs:
        panels += [lambda axes: draw_loss(axes, runs, "seconds", "seconds"),
                   lambda axes: draw_loss(axes, runs, "step", "step of the server"),
                   lambda axes: draw_speed(axes, runs)]
    panels += [lambda axes, trace=trace: draw_parts(axes, parts_of(trace)) for trace in traces]
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.2), squeeze=False)
    for panel, axes in zip(panels, all_axes[0]):
        panel(axes)
    figure.tight_layout()
    figure.savefig(path)


def parse():
    parser = argparse.ArgumentParser(prog="tools/plot", allow_abbrev=False, add_help=False)
    parser.add_argument("records", nargs="*")
    parser.add_argument("--trace", action="append", default=[])
    parser.add_argument("--picture", required=True)
    arguments = parser.parse_args()
    if not arguments.records and not arguments.trace:
        parser.error("found neither a record nor --trace, expected at least one")
    return arguments


def main():
    arguments = parse()
    try:
        draw({path: records_of(path) for path in arguments.records}, arguments.trace, arguments.picture)
    except OSError as error:
        sys.exit(f"plot: {error.filename}: {error.strerror}")
    print(f"wrote {arguments.picture}")


if __name__ == "__main__":
    main()
