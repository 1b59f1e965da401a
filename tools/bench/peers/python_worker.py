#!/usr/bin/python3
"""Sluice's worker in Python, beside the one in C++: the server is the same program."""

import os
import sys

import participant

# Programs and packages lie beside each other as in the tree.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "worker", "python"))
os.environ.setdefault("SLUICE_LIBRARY", os.path.join(ROOT, "worker", "c", "libsluice.so.0"))


def run_worker(flags):
    import sluice  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel
    job = sluice.start([f"--server={flags.address}", f"--name=worker-{flags.index}"])
    vector = torch.nn.Parameter(torch.zeros(flags.elements))
    sgd = torch.optim.SGD([vector], lr=participant.LEARNING_RATE)
    optimizer = sluice.DistributedOptimizer(sgd, job)
    gradient = participant.synthetic_gradient(flags.elements)
    vector.grad.copy_(torch.from_numpy(gradient))
    participant.answer_parent("", optimizer.step)
    participant.check_parameters(gradient, optimizer.last.step, vector.detach().numpy())
    optimizer.leave()


def main():
    parser = participant.parser(__doc__)
    parser.add_argument("--shared-memory", action="store_true", help="of the server")
    flags = parser.parse_args()
    if flags.participant == "server":
        program = os.path.join(ROOT, "tools", "bench", "rounds", "participant_main")
        os.execv(program, [program, *sys.argv[1:], "--side=sluice", "--socket=unix"])
    run_worker(flags)


if __name__ == "__main__":
    main()
