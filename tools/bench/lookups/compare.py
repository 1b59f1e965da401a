#!/usr/bin/env python3
"""Trains a table of embeddings through Sluice and through its peers. tools/bench/tables starts it; --help tells more."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "harness"))
# pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "GLOG_minloglevel": "1"}
TICK = os.sysconf("SC_CLK_TCK")


class Process:
    """A process that prints "ready", waits for a line, measures, and prints a line of JSON; servers do none of it."""

    def __init__(self, command, cwd):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [str(word) for word in command], env=ENVIRONMENT, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True
        )

    def cpu_seconds(self):
        with open(f"/proc/{self._process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_bytes(self):
        with open(f"/proc/{self._process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def next_line(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.kill()
            self._errors.seek(0)
            raise SystemExit(f"tables: {' '.join(self._process.args)} failed:\n{self._errors.read()[-2000:]}")
        return line.strip()

    def await_ready(self):
        while self.next_line() != "ready":
            pass

    def begin(self):
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def end(self, wait=True):
        if not wait:
            self._process.terminate()
        self._process.communicate(timeout=120)


class Run:
    """A run of all its processes, which begin to measure when all are ready, until the last result."""

    def __init__(self, server, workers):
        for worker in workers:
            worker.await_ready()
        measured = ([server] if server else []) + workers
        before = [process.cpu_seconds() for process in measured]
        for worker in workers:
            worker.begin()
        self.resident = server.resident_bytes() if server else 0
        results = [json.loads(worker.next_line()) for worker in workers]
        self.cpu = sum(process.cpu_seconds() for process in measured) - sum(before)
        self.rows = sum(result["rows"] for result in results)
        self.rows_per_second = sum(result["rows"] / result["seconds"] for result in results)
        self.rows_per_cpu_second = self.rows / self.cpu
        self.median_ms = statistics.median(result["median_ms"] for result in results)
        self.p99_ms = max(result["p99_ms"] for result in results)


def shape(flags):
    return [f"--rows={flags.rows}", f"--width={flags.width}", f"--exponent={flags.exponent}"]


def batches(flags, count=None):
    return [f"--ids={flags.ids}", f"--bag={flags.bag}", f"--batches={count or flags.batches}"]


class SluiceJob:
    """A server in async mode and its trainers. `reads`: one more worker that only pulls is what is measured."""

    def __init__(self, flags, folder, socket, server_flags=()):
        self._flags = flags
        self._folder = folder
        self._address = f"unix:{folder}/server.sock" if socket == "unix" else "127.0.0.1:17380"
        self.server = Process(
            [f"{flags.bin}/server/sluice_server", f"--listen={self._address}", "--mode=async",
             "--workers=1", "--insecure-on-network", *server_flags], folder)

    def worker(self, name, *more, count=None):
        return Process(
            [f"{self._flags.bin}/tools/bench/lookups/lookup_worker", f"--server={self._address}", f"--name={name}",
             *shape(self._flags), *batches(self._flags, count), *more], self._folder)


def run_sluice(flags, socket, workers, server_flags=()):
    with tempfile.TemporaryDirectory(prefix="sluice-tables-") as folder:
        job = SluiceJob(flags, folder, socket, server_flags)
        trainers = [job.worker(f"trainer-{i}", *(["--fill"] if i == 0 else [])) for i in range(workers)]
        run = Run(job.server, trainers)
        for process in [*trainers, job.server]:
            process.end()
        return run


def run_pulls(flags, trained):
    """Pulls of a worker that only reads, while another trains or is not there."""
    with tempfile.TemporaryDirectory(prefix="sluice-tables-") as folder:
        job = SluiceJob(flags, folder, "unix", ["--wait-for-more"])  # the filler may leave before the reader joins
        filler = job.worker("filler", "--fill", count=100 * flags.batches if trained else 1)
        filler.await_ready()
        filler.begin()
        reader = job.worker("reader", "--reads")
        run = Run(job.server, [reader])
        reader.end()
        filler.end(wait=not trained)
        job.server.end(wait=False)
        return run


def run_rpc(flags, transport, trainers):
    with tempfile.TemporaryDirectory(prefix="sluice-tables-") as folder:
        def start(rank):
            return Process(
                ["/usr/bin/python3", f"{FOLDER}/rpc_embedding.py", f"--rank={rank}", f"--trainers={trainers}",
                 f"--rendezvous={folder}/rendezvous", f"--transport={transport}", *shape(flags), *batches(flags)], folder)

        processes = [start(rank) for rank in range(trainers + 1)]
        run = Run(processes[0], processes[1:])
        for process in processes:
            process.end()
        return run


def run_local(flags, optimizer):
    process = Process(["/usr/bin/python3", f"{FOLDER}/local_embedding.py", f"--optimizer={optimizer}", *shape(flags),
                       *batches(flags)], None)
    run = Run(None, [process])
    process.end()
    return run


def training(flags):
    sides = {"sluice-unix": lambda n: run_sluice(flags, "unix", n), "sluice-tcp": lambda n: run_sluice(flags, "tcp", n),
             "rpc-tcp": lambda n: run_rpc(flags, "uv", n), "rpc-shm": lambda n: run_rpc(flags, "shm", n)}
    cells = {f"{name}, {n} workers": (lambda side=side, n=n: side(n))
             for n in flags.workers for name, side in sides.items()}
    cells["local, Adagrad"] = lambda: run_local(flags, "adagrad")
    cells["local, SparseAdam"] = lambda: run_local(flags, "sparse-adam")
    compare(cells, flags)


def checkpoints(flags):
    def with_checkpoints():
        with tempfile.TemporaryDirectory(prefix="sluice-checkpoints-") as folder:
            return run_sluice(flags, "unix", 1, [f"--checkpoint-dir={folder}/c", f"--checkpoint-every={flags.every}"])

    compare({"no checkpoints": lambda: run_sluice(flags, "unix", 1), f"one every {flags.every} steps": with_checkpoints},
            flags)


def pulls(flags):
    compare({"pulls alone": lambda: run_pulls(flags, False), "pulls beside training": lambda: run_pulls(flags, True)}, flags)


def compare(cells, flags):
    print(f"{flags.rows} rows of {flags.width}, Zipf {flags.exponent}, batches of {flags.ids} ids in bags of {flags.bag}; "
          f"load before {os.getloadavg()[0]:.2f}\n\n"
          "| | rows/s | least-most | rows per CPU-second | batch, median ms | p99 ms | server's memory, MB |\n"
          "|---|---|---|---|---|---|---|", flush=True)
    runs = {name: [] for name in cells}
    counted = Counted(flags.passes * len(cells))
    for _ in range(flags.passes):
        for name, cell in cells.items():
            runs[name].append(cell())
            counted.add(f"{name}: {runs[name][-1].rows_per_second:.0f} rows/s")
    for name, of_cell in runs.items():
        def middle(figure):
            return statistics.median(getattr(run, figure) for run in of_cell)

        paces = [run.rows_per_second for run in of_cell]
        print(f"| {name} | {middle('rows_per_second'):.0f} | {min(paces):.0f}-{max(paces):.0f} | "
              f"{middle('rows_per_cpu_second'):.0f} | {middle('median_ms'):.2f} | {middle('p99_ms'):.2f} | "
              f"{middle('resident') / 1e6:.0f} |", flush=True)


WHAT = {"training": training, "pulls": pulls, "checkpoints": checkpoints}


def parse():
    parser = argparse.ArgumentParser(prog="tools/bench/tables", allow_abbrev=False)
    parser.add_argument("--bin", required=True, help=argparse.SUPPRESS)
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--ids", type=int, default=4096)
    parser.add_argument("--bag", type=int, default=1)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--exponent", type=float, default=1.1)
    parser.add_argument("--workers", type=lambda text: [int(number) for number in text.split(",")], default=[1, 2])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--every", type=int, default=100)
    return parser.parse_args()


if __name__ == "__main__":
    FLAGS = parse()
    WHAT[FLAGS.what](FLAGS)
