#!/usr/bin/env python3
"""Measures the CPU that the live page and the metrics take in a server, and prints a table.

tools/bench/page starts it, and its --help tells of the flags.
"""

import argparse
import contextlib
import datetime
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "harness"))
# pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402

ELEMENTS = 1000  # of the model
MOST_IN_A_PROCESS = 250  # workers
THREADS = ("sluice-page", "sluice-history", "sluice-web", "MHD-single")
PATIENCE = 60  # seconds for a program to start


class Server:
    """A server, and workers that push and pull."""

    def __init__(self, flags, workers, stack, *own):
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-page-"))
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        stack.callback(self.log.close)
        address = f"unix:{self.folder}/server"
        self.process = self.start(stack, f"{flags.bin}/server/sluice_server", f"--listen={address}", "--mode=async",
                                  f"--workers={workers}", f"--checkpoint-dir={self.folder}/checkpoints", *own)
        self.await_line("listening on")
        for first in range(0, workers, MOST_IN_A_PROCESS):
            count = min(MOST_IN_A_PROCESS, workers - first)
            crowd = self.start(stack, f"{flags.bin}/tools/bench/crowds/crowd_worker_main", f"--address={address}",
                               f"--elements={ELEMENTS}", f"--first={first}", f"--count={count}",
                               f"--compute={flags.compute * workers}")
            for line in ("join\n", "start\n"):
                crowd.stdin.write(line)
                crowd.stdin.flush()

    def start(self, stack, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.log, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def await_line(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = re.search(pattern, os.pread(self.log.fileno(), 1 << 20, 0).decode())
            if found:
                return found
            time.sleep(0.05)
        raise SystemExit(f"page: the server did not say {pattern}")

    def seconds(self):
        """The CPU seconds of each kind of thread, those of the main thread as "main"."""
        folder, seconds = f"/proc/{self.process.pid}/task", {}
        for thread in os.listdir(folder):
            try:
                with open(f"{folder}/{thread}/comm", encoding="utf-8") as file:
                    name = "main" if int(thread) == self.process.pid else file.read().strip()
                with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
                    seconds[name] = seconds.get(name, 0) + int(file.read().split()[0]) / 1e9
            except FileNotFoundError:  # it has ended meanwhile
                pass
        return seconds

    def percent_of(self, names, length):
        """Of a core, for that time."""
        before, began = self.seconds(), time.monotonic()
        time.sleep(length)
        after, took = self.seconds(), time.monotonic() - began
        return {name: 100 * (after.get(name, 0) - before.get(name, 0)) / took for name in names}


def read_events(url, stop):
    with urllib.request.urlopen(url + "api/events", timeout=PATIENCE) as stream:
        while not stop.is_set() and stream.readline():
            pass


def scrape(url, stop):
    while not stop.wait(1):
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            answer.read()


@contextlib.contextmanager
def beside(target, url, count):
    """So many callers, until the block ends."""
    stop = threading.Event()
    callers = [threading.Thread(target=target, args=(url, stop), daemon=True) for _ in range(count)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        stop.set()
        for caller in callers:
            caller.join(PATIENCE)


def row(workers, what, percent):
    own = " | ".join(f"{percent[name]:.2f}" for name in THREADS)
    print(f"| {workers} | {what} | {percent['main']:.2f} | {own} | {sum(percent.values()):.2f} |", flush=True)


def measure(flags, workers, counted):
    names = ("main", *THREADS)

    def note(server, what):
        row(workers, what, server.percent_of(names, flags.seconds))
        counted.add(f"{workers} workers, {what}")

    with contextlib.ExitStack() as stack:
        server = Server(flags, workers, stack)
        time.sleep(flags.warm_up)
        note(server, "neither")
    with contextlib.ExitStack() as stack:
        server = Server(flags, workers, stack, "--page=127.0.0.1:0", "--metrics=127.0.0.1:0")
        page = server.await_line(r"the live page is at (\S+)").group(1)
        metrics = server.await_line(r"metrics at (\S+)").group(1)
        time.sleep(flags.warm_up)
        note(server, "page, nobody looks")
        for readers in (1, 10):
            with beside(read_events, page, readers):
                note(server, f"page, {readers} look{'s' if readers == 1 else ''}")
        with beside(scrape, metrics, 1):
            note(server, "page, metrics each second")


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/page", allow_abbrev=False)
    parser.add_argument("--bin", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=lambda text: [int(number) for number in text.split(",")], default=[3, 1000])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warm-up", type=float, default=10)
    parser.add_argument("--compute", type=float, default=0.002)
    flags = parser.parse_args()
    print(f"{datetime.datetime.now():%Y-%m-%d %H:%M}, {os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}; "
          "percent of a core\n")
    print("| workers | | main thread | " + " | ".join(f"`{name}`" for name in THREADS) + " | sum |\n|---|---|---|---|---|---|---|---|")
    counted = Counted(5 * len(flags.workers))
    for workers in flags.workers:
        measure(flags, workers, counted)
    print(f"\nload after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
