#!/usr/bin/env python3
"""Measures jobs with several servers in network namespaces, and prints tables.

tools/bench/several-servers starts it in a network namespace of its own, and its --help tells of the flags.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "harness"))
# pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402

WARM_UP = 2  # rounds
PATIENCE = 60  # seconds for a program to start or to end
PORT = 7070
# The words of the capacity model, tools/bench/scaling/capacity.h.
BIT = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*words):
    """Runs a command that must succeed."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Host:
    """A network namespace at the end of a link, whose rate is limited in both directions."""

    def __init__(self, number, rate):
        self.address = f"10.214.{number}.2"
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"], stdout=subprocess.PIPE, text=True
        )
        self.holder.stdout.readline()
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        near, shape = f"near{number}", f"root tbf rate {rate} burst 256kb latency 50ms".split()
        run(*f"ip link add name {near} type veth peer name far netns {self.holder.pid}".split())
        run(*f"ip address add 10.214.{number}.1/24 dev {near}".split())
        run(*f"ip link set {near} up".split())
        run("tc", "qdisc", "add", "dev", near, *shape)
        for command in (
            "ip link set lo up",
            f"ip address add {self.address}/24 dev far",
            "ip link set far up",
            f"ip route add default via 10.214.{number}.1",
        ):
            run(*self.enter, *command.split())
        run(*self.enter, "tc", "qdisc", "add", "dev", "far", *shape)

    def end(self):
        self.holder.kill()
        self.holder.wait()


class Job:
    """Servers and workers of one vector. Workers are in this namespace."""

    def __init__(self, flags, addresses, prefixes):
        elements = round(flags.size * 1e6 / 4)
        several = len(addresses) > 1
        self.flags = flags
        self.addresses = addresses
        self.servers = []
        for index, prefix in enumerate(prefixes):
            where = (
                [f"--servers={','.join(addresses)}", f"--index={index}"] if several else [f"--listen={addresses[0]}"]
            )
            common = [f"--workers={flags.workers}", "--insecure-on-network", "--shared-memory=off", "--threads=1"]
            self.servers.append(
                subprocess.Popen(
                    [*prefix, f"{flags.bin}/server/sluice_server", *where, *common],
                    env=ENVIRONMENT,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        program = f"{flags.bin}/tools/bench/rounds/participant_main"
        self.workers = [
            subprocess.Popen(
                [program, "--side=sluice", "--participant=worker", f"--elements={elements}"]
                + [f"--workers={flags.workers}", f"--index={i}", f"--address={addresses[0]}"],
                env=ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for i in range(flags.workers)
        ]
        for worker in self.workers:
            if not worker.stdout.readline().startswith("ready"):
                raise RuntimeError("a worker has not joined")

    def round(self):
        """Returns the seconds of the slowest worker."""
        for worker in self.workers:
            worker.stdin.write("round\n")
            worker.stdin.flush()
        return max(float(worker.stdout.readline()) for worker in self.workers)

    def cpu(self):
        """Seconds of CPU that all programs have used so far."""
        ticks = 0
        for process in (*self.workers, *self.servers):
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])  # utime and stime of proc(5)
        return ticks / os.sysconf("SC_CLK_TCK")

    def counted(self):
        """What ListServers says of each server."""
        command = [f"{self.flags.bin}/tools/ctl/sluicectl", "servers", "--json", f"--server={self.addresses[0]}"]
        answer = subprocess.run(
            [*command, "--insecure-on-network"], check=True, capture_output=True, text=True, timeout=PATIENCE
        )
        return json.loads(answer.stdout)["servers"]

    def settled(self):
        """The same, when no server's figures grow any more: other servers tell theirs several times a second."""
        before, now = None, self.counted()
        while before != [(s["wireBytesReceived"], s["wireBytesSent"]) for s in now]:
            before = [(s["wireBytesReceived"], s["wireBytesSent"]) for s in now]
            time.sleep(1)
            now = self.counted()
        return now

    def end(self):
        """All workers leave, and the job ends. Raises an error if any program fails."""
        for worker in self.workers:
            worker.stdin.close()
        for process in (*self.workers, *self.servers):
            if process.wait(timeout=PATIENCE) != 0:
                raise RuntimeError(f"{process.args} ended with {process.returncode}")


def loopback(flags, servers, prefix=()):
    addresses = [f"127.0.0.1:{PORT + i}" for i in range(servers)]
    return Job(flags, addresses, [prefix] * servers)


def behind_links(flags, servers, hosts):
    addresses = [f"{host.address}:{PORT}" for host in hosts[:servers]]
    return Job(flags, addresses, [host.enter for host in hosts[:servers]])


def measured(flags, start):
    """The seconds of rounds of each number of servers, and the CPU seconds of one. Jobs take turns."""
    seconds = {servers: [] for servers in flags.servers}
    cpu = dict.fromkeys(flags.servers, 0.0)
    counted = Counted(flags.passes * len(flags.servers))
    for _ in range(flags.passes):
        for servers in flags.servers:
            job = start(servers)
            for _ in range(WARM_UP):
                job.round()
            before = job.cpu()
            seconds[servers] += [job.round() for _ in range(flags.rounds)]
            cpu[servers] += (job.cpu() - before) / (flags.rounds * flags.passes)
            job.end()
            counted.add(f"{servers} servers")
    return seconds, cpu


def rate_of(text):
    """Bytes in a second of a rate in the words of tc."""
    unit = next(unit for unit in BIT if text.endswith(unit))
    return float(text[: -len(unit)]) * BIT[unit] / 8


def links(flags):
    hosts = [Host(i, flags.rate) for i in range(max(flags.servers))]
    try:
        seconds, cpu = measured(flags, lambda servers: behind_links(flags, servers, hosts))
    finally:
        for host in hosts:
            host.end()
    bytes_each_way = flags.workers * flags.size * 1e6
    first = statistics.median(seconds[flags.servers[0]])
    print(f"{flags.workers} workers, {flags.size:g} MB, a link of {flags.rate} each way for each server\n")
    print("| servers | ms of a round | least–most | rounds | CPU ms | MB/s each way | of the links | times the first row |")
    print("|---|---|---|---|---|---|---|---|")
    for servers, rounds in seconds.items():
        median = statistics.median(rounds)
        # All push, then all pull: each way has half of the round.
        pace = bytes_each_way / (median / 2)
        print(
            f"| {servers} | {1e3 * median:.0f} | {1e3 * min(rounds):.0f}–{1e3 * max(rounds):.0f} | {len(rounds)} "
            f"| {1e3 * cpu[servers]:.1f} | {pace / 1e6:.1f} | {pace / (servers * rate_of(flags.rate)):.2f} | {first / median:.2f} |"
        )


def count_bytes(flags):
    print(f"{flags.workers} worker, {flags.rounds} rounds over loopback\n")
    print("| MB | server | elements | received | sent | busiest / least busy |\n|---|---|---|---|---|---|")
    counted = Counted(len(flags.sizes))
    for size in flags.sizes:
        flags.size = size
        job = loopback(flags, flags.servers[-1])
        for _ in range(flags.rounds):
            job.round()
        servers = job.settled()
        job.end()
        counted.add(f"{size:g} MB")
        moved = [int(s["wireBytesReceived"]) + int(s["wireBytesSent"]) for s in servers]
        for server in servers:
            last = server is servers[-1]
            ratio = f"{max(moved) / min(moved):.4f}" if last else ""
            print(
                f"| {size:g} | {server['index']} | {server['elements']} | {server['wireBytesReceived']} "
                f"| {server['wireBytesSent']} | {ratio} |"
            )


def latency(flags):
    seconds, cpu = measured(flags, lambda servers: loopback(flags, servers))
    first = statistics.median(seconds[flags.servers[0]])
    print(f"{flags.workers} worker, {flags.size:g} MB over loopback\n")
    print("| servers | ms of a round | 10th–90th percentile | rounds | CPU ms | more than the first row, ms |")
    print("|---|---|---|---|---|---|")
    for servers, rounds in seconds.items():
        tenths = statistics.quantiles(rounds, n=10)
        median = statistics.median(rounds)
        print(
            f"| {servers} | {1e3 * median:.3f} | {1e3 * tenths[0]:.3f}–{1e3 * tenths[-1]:.3f} | {len(rounds)} "
            f"| {1e3 * cpu[servers]:.2f} | {1e3 * (median - first):+.3f} |"
        )


def peak(process):
    """The most bytes that the process has had in memory so far."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def memory(flags):
    limit = ["prlimit", f"--as={round(flags.limit * 1e6)}"]
    print(f"{flags.size:g} MB, {flags.workers} worker over loopback, each server limited to {flags.limit:g} MB of addresses\n")
    print("| servers | MB of a stripe | rounds | most MB of a server | in stripes | MB of a worker | in models |")
    print("|---|---|---|---|---|---|---|")
    counted = Counted(len(flags.servers))
    for servers in flags.servers:
        job = loopback(flags, servers, limit)
        for _ in range(flags.rounds):
            job.round()
        most = max(peak(server) for server in job.servers) / 1e6
        worker = max(peak(worker) for worker in job.workers) / 1e6
        job.end()
        counted.add(f"{servers} servers")
        stripe = flags.size / servers
        print(
            f"| {servers} | {stripe:.0f} | {flags.rounds} | {most:.0f} | {most / stripe:.2f} "
            f"| {worker:.0f} | {worker / flags.size:.2f} |"
        )


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


MEASUREMENTS = {
    "links": (links, {"servers": [1, 2, 4], "workers": 2, "size": 20, "rounds": 5}),
    "bytes": (count_bytes, {"servers": [4], "workers": 1, "size": 0, "rounds": 10}),
    "latency": (latency, {"servers": [1, 4], "workers": 1, "size": 0.24, "rounds": 300}),
    "memory": (memory, {"servers": [16], "workers": 1, "size": 2147.483648, "rounds": 3}),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--servers", type=numbers(int))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--size", type=float)
    # LeNet, a model of 10 million elements, and ResNet-50.
    parser.add_argument("--sizes", type=numbers(float), default=[1.72432, 40, 102.228128])
    parser.add_argument("--rate", default="400mbit")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--limit", type=float, default=805.306368)
    flags = parser.parse_args()
    measure, defaults = MEASUREMENTS[flags.what]
    for name, value in defaults.items():
        if getattr(flags, name) is None:
            setattr(flags, name, value)
    run("ip", "link", "set", "lo", "up")
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as forward:
        forward.write("1")
    now = datetime.datetime.now().astimezone()
    print(f"{now:%Y-%m-%d %H:%M}, {os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}; ", end="")
    measure(flags)
    print(f"\nload after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
