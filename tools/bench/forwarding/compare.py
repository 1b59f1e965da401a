#!/usr/bin/env python3
"""Trains with the model on a server, through Sluice and through PyTorch RPC, and prints the pace of both.

tools/bench/forward starts it, and its --help tells of the flags.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "harness"))
# pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Run:
    """What the trainers of one run printed."""

    def __init__(self, outputs):
        text = "\n".join(outputs)
        self.pace = sum(int(pace) for pace in re.findall(r"(\d+) images/s", text))
        self.lost = sum(int(lost) for lost in re.findall(r"(\d+) batches lost", text))
        accuracy = re.search(r"test accuracy (\S+)", text)
        self.accuracy = float(accuracy[1]) if accuracy else None


def outputs_of(commands, cwd):
    """Runs the commands beside each other and returns what they print."""
    running = [
        subprocess.Popen(command, env=ENVIRONMENT, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    outputs = []
    for process in reversed(running):  # the trainers first: servers wait for them
        try:
            output, errors = process.communicate(timeout=1800)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
        if process.returncode:
            for other in running:
                other.kill()
            raise SystemExit(f"forward: {' '.join(process.args)} failed:\n{errors[-2000:]}")
        outputs.append(output)
    return outputs


def common(arguments):
    test = [] if arguments.epochs else ["--no-test"]
    return [f"--batches={0 if arguments.epochs else arguments.batches}", f"--epochs={arguments.epochs or 1}", *test]


def run_sluice(model, trainers, arguments):
    """A parameter server, a model server and the trainers, over unix sockets."""
    with tempfile.TemporaryDirectory(prefix="sluice-forward-") as folder:
        examples = os.path.join(arguments.bin, "worker/torch/examples")
        server = [os.path.join(arguments.bin, "server/sluice_server"), f"--listen=unix:{folder}/parameters.sock",
                  f"--workers={trainers}", "--mode=async"]
        module = [os.path.join(examples, "module_server"), f"--server=unix:{folder}/parameters.sock",
                  f"--part={model}", f"--at=unix:{folder}/module.sock", f"--learning-rate={arguments.learning_rate}"]
        trainer = [os.path.join(examples, "module_trainer"), f"--server=unix:{folder}/module.sock", *common(arguments)]
        return Run(outputs_of([server, module, *([*trainer, f"--name=trainer-{i}"] for i in range(trainers))], folder))


def run_rpc(model, trainers, arguments):
    program = os.path.join(FOLDER, "rpc_parameter_server.py")
    return Run(outputs_of([[program, f"--model={model}", f"--trainers={trainers}",
                            f"--learning-rate={arguments.learning_rate}", *common(arguments)]], None))


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(prog="tools/bench/forward", allow_abbrev=False)
    parser.add_argument("--bin", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--models", default="lenet,tutorial", type=lambda text: text.split(","))
    parser.add_argument("--trainers", default=[1, 2], type=numbers)
    parser.add_argument("--batches", default=300, type=int)
    parser.add_argument("--epochs", default=0, type=int)
    parser.add_argument("--passes", default=3, type=int)
    parser.add_argument("--learning-rate", default=0.03, type=float)
    return parser.parse_args()


def row(model, trainers, arguments, counted):
    pairs = []
    for _ in range(arguments.passes):
        pairs.append((run_rpc(model, trainers, arguments), run_sluice(model, trainers, arguments)))
        counted.add(f"{model}, {trainers}: {pairs[-1][0].pace}, {pairs[-1][1].pace}")
    rpc, sluice = zip(*pairs)
    ratios = [ours.pace / theirs.pace for theirs, ours in pairs]
    accuracy = ""
    if arguments.epochs:
        accuracy = " | ".join(f"{statistics.median(run.accuracy for run in runs):.4f}" for runs in (rpc, sluice))
    return (f"| {model} | {trainers} | {statistics.median(run.pace for run in rpc):.0f} | "
            f"{statistics.median(run.pace for run in sluice):.0f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{statistics.median(run.lost for run in rpc):.0f} | {accuracy or '- | -'} |")


def main():
    arguments = parse()
    print("| model | trainers | PyTorch RPC, images/s | Sluice, images/s | ratio | batches that RPC lost | accuracy, RPC |"
          " accuracy, Sluice |\n|---|---|---|---|---|---|---|---|")
    counted = Counted(arguments.passes * len(arguments.models) * len(arguments.trainers))
    for model in arguments.models:
        for trainers in arguments.trainers:
            print(row(model, trainers, arguments, counted), flush=True)


if __name__ == "__main__":
    main()
