#!/usr/bin/python3
"""What surrounds training: around_training.py SCENARIO [ARGUMENT…] [--sluice-…]. around_training_test.py starts it."""

import collections
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
import zlib

import sluice

if __name__ == "__main__":  # before torch, which a process that serves does not need
    started = sluice.start()
    if started.is_server:
        sys.exit(started.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from saying import expect, say  # noqa: E402
from torch import nn  # noqa: E402

OPTIMIZERS = {
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.1),
    "momentum": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda groups: torch.optim.Adam(groups, lr=0.01, amsgrad=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=0.01),
    "adagrad": lambda groups: torch.optim.Adagrad(groups, lr=0.05, initial_accumulator_value=0.1),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, lr=0.01, momentum=0.5, centered=True),
}


def make_model():
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    model[0].bias.requires_grad_(False)
    return model


def make_optimizer(name, model):
    groups = [{"params": [model[2].weight, model[0].bias]}, {"params": [model[0].weight, *model[1].parameters()], "lr": 0.02},
              {"params": [model[2].bias]}]
    return OPTIMIZERS[name](groups)


def train(model, optimizer, steps):
    """All processes have the same batches, so that the mean of their gradients is that of one."""
    for step in steps:
        inputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()


def assert_close(own, other):
    assert own.keys() == other.keys(), (own, other)
    for index, state in other.items():
        assert own[index].keys() == state.keys(), (own[index], state)
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                seen = own[index][name]
                assert (seen.dtype, seen.shape) == (value.dtype, value.shape), (index, name, seen, value)
                assert (seen - value).abs().max() < 1e-6, (index, name, seen, value)
            else:
                assert own[index][name] == value, (index, name, own[index][name], value)


def brings_the_state(job, name):
    model, alone = make_model(), make_model()
    optimizer = sluice.DistributedOptimizer(make_optimizer(name, model), job, model)
    own = make_optimizer(name, alone)
    assert_close(optimizer.state_dict()["state"], own.state_dict()["state"])  # before the first step
    train(model, optimizer, range(5))
    train(alone, own, range(5))
    saved = optimizer.state_dict()
    assert saved["param_groups"] == own.state_dict()["param_groups"]
    assert_close(saved["state"], own.state_dict()["state"])
    say("equal", len(saved["state"]))
    if job.rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": saved}, sys.argv[-1])


def goes_on_from_the_state(job, name):
    """The job of a snapshot that brings_the_state() has made, in another launch."""
    snapshot = torch.load(sys.argv[-1])
    model, alone = make_model(), make_model()
    model.load_state_dict(snapshot["model"])
    inner = make_optimizer(name, model)
    inner.load_state_dict(snapshot["optimizer"])
    optimizer = sluice.DistributedOptimizer(inner, job, model)
    own = make_optimizer(name, alone)
    train(model, optimizer, range(5, 10))
    train(alone, own, range(10))
    say("difference", max((a - b).abs().max().item() for a, b in zip(model.state_dict().values(), alone.state_dict().values())))


def says_its_state(job, name):
    """Of a model that several servers share."""
    torch.manual_seed(1)
    model = nn.Linear(100, 30)
    optimizer = sluice.DistributedOptimizer(OPTIMIZERS[name](list(model.parameters())), job, model)
    for step in range(4):
        optimizer.zero_grad()
        inputs = torch.randn(3, 100, generator=torch.Generator().manual_seed(10 * step + job.rank))
        model(inputs).square().mean().backward()
        optimizer.step()
    saved = optimizer.state_dict()["state"]
    tensors = [value for entry in saved.values() for value in entry.values() if isinstance(value, torch.Tensor)]
    say("state", *[len(entry) for entry in saved.values()], zlib.crc32(b"".join(one.numpy().tobytes() for one in tensors)))


def has_no_state(job):
    """After the end."""
    model = nn.Linear(2, 1)
    optimizer = sluice.DistributedOptimizer(torch.optim.Adagrad(model.parameters()), job, model)
    train_once = model(torch.ones(1, 2)).sum()
    train_once.backward()
    optimizer.step()
    optimizer.await_end()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert optimizer.state_dict()["state"] == {}
    say("told", told[0].message)


def reduces(job):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8):
        tensor = torch.tensor([[job.rank + 1, 2], [3, 4 * job.rank]], dtype=dtype)
        assert job.all_reduce(tensor) is tensor
        ranks = range(job.size)
        assert tensor.tolist() == [[sum(rank + 1 for rank in ranks), 2 * job.size], [3 * job.size, 4 * sum(ranks)]], tensor
    mean = job.all_reduce(torch.tensor([float(job.rank)]), "mean")
    assert mean.item() == (job.size - 1) / 2
    assert job.all_reduce(torch.tensor(job.rank), "max").item() == job.size - 1
    assert job.all_reduce(torch.tensor(job.rank), "min").item() == 0
    assert job.all_reduce(torch.empty(0)).numel() == 0
    large = torch.full((1_000_001,), job.rank + 0.5)
    job.all_reduce(large)
    assert torch.equal(large, torch.full_like(large, sum(rank + 0.5 for rank in range(job.size))))
    column = torch.arange(6.0).view(2, 3).t()[:, 0]  # not contiguous
    job.all_reduce(column)
    assert column.tolist() == [0, job.size, 2 * job.size]
    parameter = nn.Parameter(torch.ones(2))
    job.all_reduce(parameter)
    assert parameter.tolist() == [job.size] * 2
    expect(ValueError, "op is 'product'", lambda: job.all_reduce(torch.ones(1), "product"))
    expect(ValueError, "the mean of torch.int64", lambda: job.all_reduce(torch.tensor(1), "mean"))
    expect(ValueError, "at most 67108864", lambda: job.all_reduce(torch.empty(1).expand(1 << 25)))
    if job.size > 1:
        differ_and_go_on(job)
    say("reduced")


def differ_and_go_on(job):
    """Calls that differ are an error of all workers, who stay in step."""
    first = job.rank == 0
    for call in (lambda: job.all_reduce(torch.ones(job.rank + 1)),
                 lambda: job.all_reduce(torch.ones((1 + job.rank) * 400_000)),
                 lambda: job.all_reduce(torch.ones(2, 3) if first else torch.ones(3, 2)),
                 lambda: job.all_reduce(torch.ones(1, dtype=torch.int64 if first else torch.float64)),
                 lambda: job.all_reduce(torch.ones(1), "sum" if first else "max"),
                 lambda: job.broadcast(1, root=0 if first else 1),
                 lambda: job.barrier() if first else job.all_reduce(torch.empty(0))):
        expect(ValueError, "the workers' calls differ: ", call)
        assert job.all_reduce(torch.tensor([job.rank])).item() == sum(range(job.size))


def broadcasts(job):
    value = {"seed": 7, "rate": 0.1, "name": "é", "bytes": b"\0\1", "none": None, "nested": [(1, 2.5), {"x": torch.ones(2, 3)}],
             3: True, "half": torch.ones(2, dtype=torch.bfloat16)}
    for root in range(job.size):
        got = job.broadcast(value if job.rank == root else None, root)
        assert torch.equal(got["nested"][1].pop("x"), torch.ones(2, 3)) and got["half"].dtype == torch.bfloat16
        del got["half"]
        assert got == {"seed": 7, "rate": 0.1, "name": "é", "bytes": b"\0\1", "none": None, "nested": [(1, 2.5), {}], 3: True}
    view = torch.zeros(30_000_000)[:3]  # of a storage that is larger than an exchange may be
    assert job.broadcast(view).tolist() == [0, 0, 0]
    state = job.broadcast(collections.OrderedDict(make_model().state_dict()) if job.rank == 0 else None)
    make_model().load_state_dict(state)
    large = job.broadcast(torch.arange(2_000_000) if job.rank == 0 else None)
    assert torch.equal(large, torch.arange(2_000_000))
    expect(TypeError, "a Linear cannot be handed", lambda: job.broadcast(nn.Linear(1, 1)))
    deep = []
    for _ in range(5000):
        deep = [deep]
    expect(TypeError, "recursion", lambda: job.broadcast(deep))
    noise = bytes(40_000_000)
    assert job.broadcast(noise) == noise
    expect(ValueError, "at most 67108864", lambda: job.broadcast(bytes(70_000_000)))
    assert job.broadcast(7 + job.rank) == 7
    expect(ValueError, "root is 9", lambda: job.broadcast(1, root=9))
    say("handed on")


def meets(job):
    began = time.monotonic()
    if job.rank == 1:
        time.sleep(1.5)
    job.barrier()
    say("waited", job.rank, time.monotonic() - began > 1)


def misses_one(job):
    if job.rank == 0:
        expect(sluice.RemoteError, "no exchange within 0.5 s: waits for rank 1 of 2;", lambda: job.barrier(timeout=0.5))
        say("named")


def is_alone(job):
    expect(ValueError, "has no rank", job.barrier)
    say("alone")


def has_several_models(job):
    """Exchanges go on between the steps of any model."""
    models = [nn.Linear(1, 1) for _ in range(2)]
    optimizers = [sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model, name=name)
                  for model, name in zip(models, (None, "other"))]
    for step in range(3):
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
        assert job.all_reduce(torch.tensor([step])).item() == step * job.size
    say("done")


def writes_values(job):
    model = nn.Linear(2, 1)
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), job, model,
                                            where="worker" if sys.argv[-1] == "worker" else "server")
    train(nn.Sequential(nn.Linear(4, 2), model), optimizer, range(2))
    saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train(nn.Sequential(nn.Linear(4, 2), model), optimizer, range(2))
        assert not told, told[0].message
        for _ in range(2):
            model.load_state_dict(saved)
            train(nn.Sequential(nn.Linear(4, 2), model), optimizer, range(1))
    say("told", *(str(warning.message).split(" since")[0] for warning in told))


def has_options_of_its_own(job):
    """Of two workers whose rates differ, the later one hears of it."""
    model = nn.Linear(1, 1)
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model)
    optimizer.param_groups[0]["lr"] = 0.25 * (job.rank + 1)
    model(torch.ones(1, 1)).sum().backward()
    try:
        optimizer.step()
        say("went on", job.rank)
    except sluice.RemoteError as error:
        say("refused", error.reason, error)
    optimizer.leave()


def is_interrupted(job):
    """Ctrl-C ends an exchange at once, also if the server does not answer. The same call then goes on with it."""
    model = nn.Linear(1, 1)
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model)
    server = min(int(child) for child in subprocess.run(["pgrep", "-P", str(os.getppid())], capture_output=True, text=True,
                                                        check=True).stdout.split())
    os.kill(server, signal.SIGSTOP)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program's own counts under mpirun, too
    threading.Thread(target=interrupt_when_it_waits, args=[job]).start()
    began = time.monotonic()
    expect(KeyboardInterrupt, "", job.barrier)
    waited = time.monotonic() - began
    os.kill(server, signal.SIGCONT)
    job.barrier()
    optimizer.leave()
    say("interrupted", waited < 5)


def interrupt_when_it_waits(job):
    while job._exchanges is None or job._exchanges._begun is None:  # pylint: disable=protected-access
        pass
    os.kill(os.getpid(), signal.SIGINT)


def drops_its_optimizers(job):
    """What a run has made and the program has dropped is gone before the run's end."""
    with job.run():
        for _ in range(3):
            model = nn.Linear(1, 1)
            optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model)
            optimizer.leave()
            made = weakref.ref(optimizer)
            del optimizer
            gc.collect()
            assert made() is None
    say("dropped")


def trains(job):
    """So that the job ends well."""
    model = nn.Linear(1, 1)
    sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model).leave()


if __name__ == "__main__":
    scenario = globals()[sys.argv[1]]
    if scenario in (brings_the_state, goes_on_from_the_state, says_its_state):
        scenario(started, sys.argv[2])
    else:
        scenario(started)
    if scenario in (reduces, broadcasts, meets, misses_one):
        trains(started)
