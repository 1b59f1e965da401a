#!/usr/bin/python3
"""Workers that are away for a while: away.py SCENARIO [ARGUMENT…] [--sluice-…]. away_test.py starts it."""

import os
import signal
import sys

import sluice

if __name__ == "__main__":  # before torch, which a process that serves does not need
    started = sluice.start()
    if started.is_server:
        sys.exit(started.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from changing_layouts import Network, checksum, push  # noqa: E402
from saying import expect, say  # noqa: E402

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
}


def make(job, kind, where, **options):
    model = Network()
    return model, sluice.DistributedOptimizer(OPTIMIZERS[kind](model.parameters()), job, model, where=where, **options)


def tell(job, model, optimizer):
    state = optimizer.state_dict()["state"]
    values = [value for entry in state.values() for value in entry.values() if isinstance(value, torch.Tensor)]
    say("rank", job.rank, "step", optimizer.last.step, "model", checksum(model.state_dict().values()), checksum(values))


def evaluates(job, kind, where, *options):
    """Worker 1 is away while worker 0 makes 20 steps, with 10 of both before and after."""
    model, optimizer = make(job, kind, where, overlap="overlap" in options)
    for step in range(10):
        push(model, optimizer, step)
    if job.rank == 1:
        before = checksum(model.parameters())
        with optimizer.away():
            job.barrier()  # the others may begin
            optimizer.zero_grad()
            expect(sluice.RemoteError, "in the block of away()", optimizer.step)
            job.barrier()  # they have made 20 steps
            assert checksum(model.parameters()) == before
    else:
        job.barrier()
        for step in range(10, 30):
            push(model, optimizer, step)
            assert optimizer.last.disposition == "applied", optimizer.last
        assert optimizer.last.step == 30, optimizer.last
        job.barrier()
    job.barrier()
    if where == "worker":
        train_until_both_are_there(job, model, optimizer, options[-1])
        first = optimizer.last.step
    else:
        first = 30
    assert job.all_reduce(torch.tensor([first])).item() == 2 * first
    for step in range(first, first + 10):
        push(model, optimizer, step)
    tell(job, model, optimizer)
    optimizer.await_end()


def train_until_both_are_there(job, model, optimizer, file):
    """Worker 1 takes the model with a step of worker 0, which therefore goes on, until both have made 5 steps."""
    if job.rank == 1:
        optimizer.zero_grad()
        push(model, optimizer, 1)
        with open(file + ".new", "w", encoding="ascii") as written:
            written.write(str(optimizer.last.step + 5))
        os.rename(file + ".new", file)
    end = None
    while end is None or optimizer.last.step < end:
        push(model, optimizer, optimizer.last.step)
        if end is None and os.path.exists(file):
            with open(file, encoding="ascii") as written:
                end = int(written.read())


def are_all_away(job, where):
    """The job does not end, and nobody's model is lost."""
    model, optimizer = make(job, "adamw", where)
    for step in range(20):
        push(model, optimizer, step)
        if step == 9:
            with optimizer.away():
                job.barrier()
            job.barrier()
    tell(job, model, optimizer)
    other = Network()
    alone = OPTIMIZERS["adamw"](other.parameters())
    for step in range(20):
        push(other, alone, step)
    say("difference", max((a - b).abs().max().item() for a, b in zip(model.parameters(), other.parameters())))
    optimizer.leave()


def takes_its_own_batches(job):
    """Worker 1 is away for the first of 2 epochs of worker 0."""
    model, optimizer = make(job, "sgd", "auto")
    sampler = sluice.DistributedSampler(40, 5, optimizer)
    taken, steps = [], []

    def train(epoch):
        for rows in sampler:
            taken.extend(rows)
            push(model, optimizer, epoch)
            steps.append(optimizer.last.step)

    if job.rank == 1:
        with optimizer.away():
            job.barrier()
            job.barrier()
    else:
        job.barrier()
        train(0)
        job.barrier()
    job.barrier()
    for epoch in range(job.rank == 0, 2):
        train(epoch)
    say("rank", job.rank, "rows", len(taken), "steps", steps[0], steps[-1])
    optimizer.leave()


def is_harmless_in_async(job):
    model, optimizer = make(job, "sgd", "auto")
    for step in range(5):
        push(model, optimizer, step)
        with optimizer.away():
            pass
    optimizer.leave()
    say("harmless")


def handles_errors(job):
    model, optimizer = make(job, "sgd", "auto")
    try:
        with optimizer.away():
            expect(sluice.ModelError, "trains a model without a name already", lambda: make(job, "sgd", "auto"))
            raise KeyError("broken")
    except KeyError:
        push(model, optimizer, 1)  # it takes part again
    assert optimizer.last.step == 1
    with optimizer.away():
        optimizer.leave()
    expect(sluice.RemoteError, "after leave()", optimizer.step)
    expect(sluice.RemoteError, "after leave()", optimizer.away().__enter__)
    say("handled")


def is_interrupted(job):
    """Ctrl-C in the block, as in a notebook: the worker takes part again with its next step."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program's own counts under mpirun, too
    model, optimizer = make(job, "sgd", "auto")
    for where in ("first block", "second block"):
        try:
            with optimizer.away():
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            say("interrupted in the", where)
        before = optimizer.last.step if optimizer.last else 0
        push(model, optimizer, 1)
        assert optimizer.last.step == before + 1, optimizer.last
    optimizer.leave()


def drops_what_it_has_computed_before(job):
    """The gradient of parameters that are not the model's any more makes no step."""
    model, optimizer = make(job, "sgd", "auto")
    push(model, optimizer, 1)
    optimizer.zero_grad()
    model(torch.randn(4, 5)).sum().backward()
    before = checksum(model.parameters())
    with optimizer.away():
        pass
    optimizer.step()
    assert optimizer.last.step == 1 and checksum(model.parameters()) == before, optimizer.last
    push(model, optimizer, 2)
    assert optimizer.last.step == 2
    optimizer.leave()
    say("dropped")


def is_not_away_with_a_mean(job):
    model, optimizer = make(job, "sgd", "worker")
    optimizer.zero_grad()
    model(torch.randn(4, 5)).sum().backward()
    optimizer.reduce()
    expect(sluice.ModelError, "call step() before away()", optimizer.away().__enter__)
    optimizer.step()
    assert optimizer.last.step == 1
    optimizer.leave()
    say("refused")


def cannot_be_away(job):
    model, optimizer = make(job, "sgd", "auto")
    error = expect(sluice.RemoteError, "", optimizer.away().__enter__)
    push(model, optimizer, 1)
    say("told", error)
    optimizer.leave()


def ends_badly(job):
    """An exception in the block ends the process: its worker is lost, and has not left."""
    model, optimizer = make(job, "sgd", "auto")
    push(model, optimizer, 1)
    with optimizer.away():
        raise KeyError("broken")


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](started, *sys.argv[2:])
