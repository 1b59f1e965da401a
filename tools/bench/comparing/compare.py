#!/usr/bin/env python3
"""Trains by allreduce and with a server in each mode, on nodes whose speed and links differ, and compares them.

tools/bench/comparison starts it, and its --help tells of the flags.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
sys.path[:0] = [os.path.join(ROOT, "tools", "plotting"), os.path.join(ROOT, "tools", "bench", "harness")]
# pylint: disable=wrong-import-position
import chart  # noqa: E402
import sweep  # noqa: E402
from counted import Counted  # noqa: E402
from results import Results  # noqa: E402

BATCH = 32
MEGABIT = 1e6 / 8

# The name in the sweep, the flags of the server, and those of its workers. Allreduce has no server.
METHODS = {
    "allreduce (MPI)": ("allreduce", None, ["--by=mpi"]),
    "allreduce (gloo)": ("allreduce", None, ["--by=gloo"]),
    "sync": ("sync", ["--mode=sync"], []),
    "backup": ("backup", ["--mode=backup"], []),
    "bounded": ("bounded", ["--mode=bounded"], []),
    "ssp": ("ssp", ["--mode=ssp"], []),
    "async": ("async", ["--mode=async"], []),
    "local steps (8)": ("local:8", ["--mode=sync"], ["--local-steps=8"]),
}

# The rate of each node's link in Mbit/s, or None, and the flags of those who train.
COLUMNS = {
    "balanced": (None, []),
    "one 4 x slower": (None, ["--slow=1:4"]),
    "random stalls": (None, ["--compute=stalls:0.02:25"]),
    "1 Gbit/s": (1000, []),
    "100 Mbit/s": (100, []),
}


class Nodes:
    """The namespaces that tools/bench/comparison has made: node1 has the server or rank 0."""

    def __init__(self, pids, ssh_config):
        self.pids = pids
        self.ssh_config = ssh_config

    def command(self, node, words):
        """Returns the words that run a command on a node, counted from 1."""
        return ["nsenter", f"--target={self.pids[node - 1]}", "--uts", "--net", "--mount", "--pid", f"--wdns={ROOT}",
                "--", *words]

    def limit(self, megabits):
        """Gives each node a link of that rate in both directions, or a free one."""
        for node in range(1, len(self.pids) + 1):
            for end in (["tc"], self.command(node, ["tc"])):
                device = f"veth{node}" if end == ["tc"] else "eth0"
                subprocess.run([*end, "qdisc", "del", "dev", device, "root"], capture_output=True, check=False)
                if megabits:
                    subprocess.run([*end, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{megabits}mbit",
                                    "burst", "256kb", "latency", "50ms"], check=True)

    def sent(self):
        """Returns the bytes that all nodes have sent."""
        links = json.loads(subprocess.run(["ip", "-s", "-j", "link"], capture_output=True, check=True).stdout)
        return sum(link["stats64"]["rx"]["bytes"] for link in links if link["ifname"].startswith("veth"))


def run(arguments, nodes, flags):
    """Makes a run: flags are method, column and those of the trainers. Returns its result as JSON."""
    method, column, *trainer = json.loads(flags[0])
    _, server, of_method = METHODS[method]
    rate, of_column = COLUMNS[column]
    nodes.limit(rate)
    trainer = [arguments.program, *trainer, *of_method, *of_column]
    with tempfile.TemporaryDirectory(dir=arguments.shared) as folder:
        before = nodes.sent()
        if server is None:
            server_cpu, errors = 0, train_by_allreduce(nodes, trainer, folder)
        else:
            server_cpu, errors = train_with_server(arguments.server, nodes, server, trainer, folder)
        sent = nodes.sent() - before
        ranks = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                ranks.append(json.load(file))
    return json.dumps({"method": method, "column": column, **result_of(ranks, sent, server_cpu, errors)})


def told(line):
    """Returns a result in few words."""
    result = json.loads(line)
    what = result.get("error") or f"{100 * result['curve'][-1][3]:.2f} % after {result['seconds']:.1f} s"
    return f"{result['column']}, {result['method']}: {what}"


def result_of(ranks, sent, server_cpu, errors):
    curves = [rank["curve"] for rank in ranks if "curve" in rank]
    if not curves:
        return {"error": sweep.reason_in(errors)}
    return {"seconds": max(rank["seconds"] for rank in ranks), "cpu": server_cpu + sum(rank["cpu"] for rank in ranks),
            "server_cpu": server_cpu, "bytes": sent, "batches": [rank["batches"] for rank in ranks],
            "exchange": [rank["exchange"] for rank in ranks], "curve": curves[0]}


def train_by_allreduce(nodes, trainer, folder):
    """Returns what the launch said."""
    count = len(nodes.pids)
    hosts = ",".join(f"node{node}" for node in range(1, count + 1))
    launch = ["mpirun", "--host", hosts, "--bind-to", "none", "-n", str(count)]
    environment = {**os.environ, "OMPI_MCA_plm_rsh_args": f"-F {nodes.ssh_config}",
                   "OMPI_MCA_btl_tcp_if_include": "eth0",
                   # The nodes share the cores of this machine: a rank that waits leaves them to the others.
                   "OMPI_MCA_mpi_yield_when_idle": "1"}
    ended = subprocess.run(nodes.command(1, [*launch, *trainer, f"--json={folder}/rank"]), env=environment,
                           capture_output=True, text=True, check=False)
    return ended.stderr or ended.stdout


def train_with_server(program, nodes, server_flags, trainer, folder):
    """Returns the CPU seconds of the server, and what the workers said."""
    workers = len(nodes.pids) - 1
    server = subprocess.Popen(nodes.command(1, [
        program, "--listen=10.78.0.1:7070", f"--workers={workers}", "--insecure-on-network", "--shared-memory=off",
        "--threads=1", *server_flags]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started = []
    for worker in range(workers):
        words = [*trainer, "--server=10.78.0.1:7070", "--insecure-on-network", f"--name=worker{worker}",
                 f"--json={folder}/worker{worker}"]
        started.append(subprocess.Popen(nodes.command(worker + 2, words), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True))
    errors = "".join(process.communicate()[1] for process in started)
    server.stderr.close()
    _, _, usage = os.wait4(server.pid, 0)
    return usage.ru_utime + usage.ru_stime, errors


def find_settings(arguments):
    """Returns {method: flags of its learning rate and momentum}, those of the highest accuracy in a sweep."""
    wanted = argparse.Namespace(
        program=arguments.train, launcher="mpirun", workers=len(arguments.pids) - 1, seeds=1,
        modes=list(dict.fromkeys(METHODS[method][0] for method in arguments.methods)),
        learning_rates=arguments.learning_rates, momenta=arguments.momenta,
        flags=[f"--batch-size={BATCH}", f"--epochs={arguments.epochs}", *arguments.flags])
    counted = Counted()
    made = Results(lambda flags: sweep.run(wanted, flags), f"{arguments.results}.sweep",
                   lambda line: counted.line(f"sweep: {line}"))
    wanted_cells = sweep.cells_of(wanted)
    counted.total = made.missing([flags for runs in wanted_cells.values() for flags in runs])
    results = {cell: [json.loads(made.make(flags)) for flags in runs] for cell, runs in wanted_cells.items()}
    settings = {}
    for method in arguments.methods:
        cells = [cell for cell in results if cell[0] == METHODS[method][0]]
        _, rate, momentum = max(cells, key=lambda cell: sweep.mean_accuracy(results[cell]))
        settings[method] = [f"--learning-rate={rate:g}", f"--momentum={momentum:g}"]
    return settings


def median(values, form):
    """Returns "median (least to most)"."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def reached(result, target):
    """Returns the seconds until the accuracy is first reached, or None."""
    return next((seconds for seconds, _, _, accuracy in result["curve"] if accuracy >= target), None)


def samples_per_step(method, workers):
    """Returns how many samples the parameters of one step have seen more than those of the step before."""
    name = METHODS[method][0]
    if name == "allreduce":
        return BATCH * (workers + 1)
    if name.startswith(sweep.LOCAL):
        return BATCH * workers * int(name.removeprefix(sweep.LOCAL))
    return BATCH * {"sync": workers, "backup": workers - 1}.get(name, 1)


def most_samples(arguments, method, column, workers):
    """Returns the samples/s that pace and link permit at most, or None where workers differ.

    A ring of n sends 2 (n - 1) / n of the model's bytes from each node in a step. A server gets them from each of its
    n - 1 workers, and sends them to each.
    """
    rate, unequal = COLUMNS[column]
    if unequal:
        return None
    name = METHODS[method][0]
    nodes = workers + 1
    trainers, models, steps = (nodes, 2 * workers / nodes, 1) if name == "allreduce" else (workers, workers, 1)
    if name.startswith(sweep.LOCAL):
        steps = int(name.removeprefix(sweep.LOCAL))
    link = models * arguments.model_bytes / (rate * MEGABIT) if rate else 0
    return trainers * BATCH * steps / max(steps * arguments.batch_seconds, link)


def for_picture(arguments, cells, workers):
    """Returns what chart.draw() draws."""
    columns = {}
    for (method, column), runs in cells.items():
        per_step = samples_per_step(method, workers)
        columns.setdefault(column, {})[method] = [
            {"curve": [[seconds, step, loss if loss is not None else float("nan"), accuracy]
                       for seconds, step, loss, accuracy in run["curve"]],
             "samples": [point[1] * per_step for point in run["curve"]],
             "rate": sum(run["batches"]) * BATCH / run["seconds"],
             "reached": reached(run, arguments.target),
             "bound": most_samples(arguments, method, column, workers)} for run in runs if "curve" in run]
    return columns


def rows_of(runs, target):
    """Returns the cells of a table for the runs of one method in one column: one run for each seed."""
    good = [run for run in runs if "curve" in run]
    if not good:
        return ["-"] * 6
    last = [run["curve"][-1] for run in good]
    times = [reached(run, target) for run in good]
    shares = [seconds / run["seconds"] if seconds else None for seconds, run in zip(times, good)]
    texts = [median([100 * point[3] for point in last], ".2f"), median([point[2] for point in last], ".3f"),
             f"{statistics.median(sum(run['batches']) * BATCH / run['seconds'] for run in good):,.0f}"]
    if None in times:
        missing = sum(time is None for time in times)
        return texts + [f"{missing} of {len(times)} never", "-", "-"]
    return texts + [median(times, ".1f"),
                    f"{statistics.median(share * run['cpu'] for share, run in zip(shares, good)):.1f}",
                    f"{statistics.median(share * run['bytes'] for share, run in zip(shares, good)) / 1e6:,.0f}"]


def table(cells, settings, target):
    """Returns one table for each column as Markdown."""
    parts = []
    for column in dict.fromkeys(column for _, column in cells):
        parts.append(f"\n**{column}**\n")
        parts.append(f"| method | settings | final accuracy, % | final test loss | samples/s | seconds to {100 * target:g} % | "
                     "CPU-s until then | MB until then |")
        parts.append("|---|---|---|---|---|---|---|---|")
        for method in METHODS:
            if (method, column) in cells:
                values = ", ".join(flag.split("=")[1] for flag in settings[method])
                parts.append("| " + " | ".join([method, values, *rows_of(cells[method, column], target)]) + " |")
    errors = sorted({run["error"] for runs in cells.values() for run in runs if "error" in run})
    return "\n".join(parts + [""] + errors)


def words(text):
    return text.split(",")


def parse():
    parser = argparse.ArgumentParser(prog="tools/bench/comparison", allow_abbrev=False, add_help=False)
    for name in ("program", "train", "server", "shared", "ssh-config", "results"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--pids", type=words, required=True)
    parser.add_argument("--methods", type=words, default=list(METHODS))
    parser.add_argument("--columns", type=words, default=list(COLUMNS))
    parser.add_argument("--learning-rates", type=sweep.decimals, default=[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
    parser.add_argument("--momenta", type=sweep.decimals, default=[0, 0.6, 0.9])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--batch-seconds", type=float, default=0.01)
    parser.add_argument("--target", type=float, default=0.85)
    parser.add_argument("--model-bytes", type=int, default=4 * 203530)  # of mlp
    parser.add_argument("--picture")
    parser.add_argument("flags", nargs="*")
    return parser.parse_args()


def runs_of(arguments, settings):
    """Yields ((method, column), the key of a run). Seeds come last: a comparison that was stopped has a run of each cell."""
    for seed in range(1, arguments.seeds + 1):
        for column in arguments.columns:
            for method in arguments.methods:
                flags = [*settings[method], f"--seconds={arguments.seconds:g}",
                         f"--batch-seconds={arguments.batch_seconds:g}", f"--test-every={arguments.seconds / 30:g}",
                         f"--batch-size={BATCH}", *arguments.flags, f"--seed={seed}"]
                yield (method, column), [json.dumps([method, column, *flags])]


def main():
    arguments = parse()
    nodes = Nodes(arguments.pids, arguments.ssh_config)
    counted = Counted()
    made = Results(lambda flags: run(arguments, nodes, flags), arguments.results, lambda line: counted.line(told(line)))
    settings = find_settings(arguments)
    runs = list(runs_of(arguments, settings))
    counted.total = made.missing([flags for _, flags in runs])
    cells = {}
    for cell, flags in runs:
        cells.setdefault(cell, []).append(json.loads(made.make(flags)))
    nodes.limit(None)
    print(table(cells, settings, arguments.target))
    if arguments.picture:
        chart.draw(for_picture(arguments, cells, len(nodes.pids) - 1), METHODS, arguments.picture, arguments.target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
