#!/usr/bin/python3
"""Workers in Python that play a scenario each: scenarios.py NAME [FLAG…]. python_test.py starts them."""

import atexit
import copy
import ctypes
import functools
import gc
import io
import itertools
import multiprocessing
import os
import random
import signal
import sys
import threading
import urllib.request
import warnings
import zlib

import sluice
from sluice._library import library

MPI = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL) if "uses_mpi_too" in sys.argv else None


def finalized():
    over = ctypes.c_int()
    MPI.MPI_Finalized(ctypes.byref(over))
    return over.value != 0


if __name__ == "__main__":  # before torch, which takes more than a second, and a process that serves does not need it
    if MPI is not None:
        MPI.MPI_Init(None, None)
        atexit.register(lambda: finalized() or MPI.MPI_Finalize())
    # The tests give the server's flags as they give them to sluice_train.
    def tell(worker, step, attached):
        os.write(1, f"server got {attached} of {worker} at step {step}\n".encode())

    started = sluice.start("all", on_attachments=tell, **({"moed": "async"} if sys.argv[1] == "unknown_setting" else {}))
    if started.is_server:
        sys.exit(started.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from saying import expect, say  # noqa: E402
from torch import nn  # noqa: E402


def linear(bias=2.0):
    """Returns a model whose weights are 1 and whose bias is `bias`."""
    model = nn.Linear(3, 2)
    nn.init.ones_(model.weight)
    nn.init.constant_(model.bias, bias)
    return model


def push(model, optimizer, gradient):
    optimizer.zero_grad()
    for parameter in model.parameters():
        if parameter.grad is None:  # of a double
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.fill_(gradient)
    optimizer.step()


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.5, **options)


def what_is_wrong(job):
    model = linear()
    expect(sluice.ModelError, "none of `model`'s", lambda: sluice.DistributedOptimizer(sgd(model), job, linear()))
    expect(sluice.ModelError, "torch.complex64", lambda: sluice.DistributedOptimizer(
        torch.optim.SGD([nn.Parameter(torch.ones(2, dtype=torch.complex64))], lr=1), job))
    expect(sluice.ModelError, "0 has shape [0]", lambda: sluice.DistributedOptimizer(
        torch.optim.SGD([nn.Parameter(torch.ones(0))], lr=1), job))
    expect(sluice.ModelError, "has taken steps", lambda: sluice.DistributedOptimizer(
        _stepped(sgd(linear(), momentum=0.9)), job, where="server"))
    expect(ValueError, "use one of them", lambda: sluice.DistributedOptimizer(sgd(model), job, overlap=True, local_steps=2))
    expect(ValueError, "called twice", sluice.start)
    error = expect(sluice.RemoteError, "SGD's learning_rate is -1", lambda: sluice.DistributedOptimizer(
        _with_rate(sgd(model), -1), job))
    assert (error.code, error.reason) == ("INVALID_ARGUMENT", "BAD_OPTIMIZER"), (error.code, error.reason)
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model, where="server")
    expect(sluice.ModelError, "--checkpoint-dir", lambda: optimizer.load_state_dict({}))
    expect(TypeError, "cannot be copied", lambda: copy.deepcopy(optimizer))
    assert optimizer.state_dict()["state"] == {}, "before the first step"
    expect(sluice.ModelError, "give the second model a name",
           lambda: sluice.DistributedOptimizer(sgd(linear()), job))
    expect(sluice.ModelError, "or add and unfreeze parameters before", lambda: optimizer.add_param_group({}))
    expect(sluice.RemoteError, "after sluice_await_end", lambda: optimizer.report(loss=1))
    push(model, optimizer, 1)
    optimizer.param_groups[0]["momentum"] = 0.9
    expect(sluice.ModelError, "param_groups[0] has changed: the options now need momentum",
           optimizer.step)
    optimizer.param_groups[0]["momentum"] = 0
    taken = model.weight.data
    for moved in (taken.clone(), torch.as_strided(taken, (2, 3), (1, 2))):
        model.weight.data = moved
        expect(sluice.ModelError, "weight lies in other memory", optimizer.step)
    model.weight.data = taken
    model.bias.requires_grad_(False)
    expect(sluice.ModelError, "have changed since", optimizer.step)
    model.bias.requires_grad_(True)
    optimizer.param_groups.append({"params": [nn.Parameter(torch.ones(1))], "lr": 0.5})
    expect(sluice.ModelError, "have changed since", optimizer.step)
    optimizer.param_groups.pop()
    for samples in (-1, 0, 2.0, 2**32, "3"):
        expect(ValueError, "expected a whole number from 1 to 4294967295",
               lambda samples=samples: optimizer.step(samples=samples))
    expect(ValueError, "loss has 2 elements", lambda: optimizer.step(loss=torch.ones(2)))
    model.share_memory()
    expect(sluice.ModelError, "share_memory", optimizer.step)
    optimizer.leave()
    expect(sluice.RemoteError, "after leave()", optimizer.step)
    say("done")


def _stepped(optimizer):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def _with_rate(optimizer, rate):
    optimizer.param_groups[0]["lr"] = rate
    return optimizer


def gradients_that_are_no_views(job):
    """What breaks a view is mended, and counts."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 1)  # weight 0.5
    model.zero_grad(set_to_none=True)
    assert model.weight.grad is None
    model(torch.ones(1, 3)).sum().backward()  # gradients of 1
    optimizer.step()  # weight 0
    model.weight.grad = torch.full_like(model.weight, 2)
    model.bias.grad = None
    optimizer.step()  # weight -1, bias as it is
    optimizer.zero_grad()
    assert model.weight.grad.sum() == 0
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        model.weight.grad.data = torch.full_like(model.weight, 2)
        optimizer.step()  # weight -2, -3, bias 0.5, 0
    optimizer.await_end()
    say("weight", model.weight[1, 2].item(), "bias", model.bias[0].item(), "step", optimizer.last.step,
        optimizer.last.disposition)


class Tables(nn.Module):
    """Embeddings that begin with 1, of several types; or one of float64, where all is copied."""

    def __init__(self, alone):
        super().__init__()
        kinds = [torch.float64] if alone else [torch.float32, torch.float64, torch.bfloat16]
        tables = [nn.Embedding(1 << 16, 2, sparse=True)] * (not alone)  # so large that overlap sends it early
        tables += [nn.Embedding(8, 2, sparse=True, dtype=kind) for kind in kinds]
        self.tables = nn.ModuleList([*tables, nn.EmbeddingBag(8, 2, sparse=True, mode="sum", dtype=kinds[0])])
        for table in self.tables:
            nn.init.ones_(table.weight)

    def forward(self, ids):
        return sum(table(ids.view(1, -1)).sum().double() for table in self.tables)


def has_sparse_gradients(job):
    """A sparse gradient counts as a dense one: in a view, to which PyTorch adds it, and without one."""
    model = Tables(alone="ALONE" in os.environ)
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model, overlap="OVERLAP" in os.environ)
    touched = torch.zeros(8, 2)
    for step in range(4):
        ids = [torch.tensor([worker, step, 5, 5]) for worker in range(optimizer.workers)]
        touched.index_add_(0, torch.cat(ids), torch.ones(4 * optimizer.workers, 2) / optimizer.workers)
        if step % 2:
            model.zero_grad(set_to_none=True)
        else:
            optimizer.zero_grad()
        model(ids[optimizer.index]).backward()
        assert model.tables[0].weight.grad.is_sparse == (step % 2 == 1 or "ALONE" in os.environ)
        optimizer.step()
    optimizer.await_end()
    for table in model.tables:
        assert torch.equal(table.weight[:8].float(), 1 - 0.5 * touched), table.weight[:8]
        assert torch.equal(table.weight[8:], torch.ones_like(table.weight[8:]))
    say("tables", len(model.tables), "as expected")


def accumulates_with_overlap(job):
    """A gradient of two backward() was sent in part after the first; step() says so, and the process can end."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model, overlap=True)
    for times in (1, 2):
        optimizer.zero_grad()
        for _ in range(times):
            model(torch.ones(1, 3)).sum().backward()
        if times == 1:
            optimizer.step()
    expect(sluice.ModelError, "twice since the last step()", optimizer.step)
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    say("weight", model.weight[0, 0].item(), "step", optimizer.last.step)
    model(torch.ones(1, 3)).sum().backward()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()


def sixteen_bits(job):
    """A model in bfloat16, whose steps are smaller than the last bit of its numbers."""
    model = linear(bias=0.5).bfloat16()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    seen = []
    for _ in range(8):
        push(model, optimizer, 2.0**-10)  # takes 2^-11 off
        seen.append(1 - model.weight[0, 0].item())
    assert (model.weight.dtype, model.weight.grad.dtype) == (torch.bfloat16, torch.bfloat16)
    vector = optimizer._flat  # pylint: disable=protected-access
    assert vector.has_one_buffer and vector.values is vector.pushed
    optimizer.await_end()
    optimizer.wait()  # copies nothing a second time
    say("below 1, in 1/256:", *[256 * below for below in seen], "at the end", 256 * (1 - model.weight[1, 2].item()),
        "bias below 0.5, in 1/512:", 512 * (0.5 - model.bias[1].item()))


def interrupted_after_a_failed_push(job):
    """An error leaves a gradient in the buffer. What is waited for after it is no reason to take that as parameters."""
    model = linear().bfloat16()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 0.5)
    assert model.weight[0, 0] == 0.75
    for parameter in model.parameters():
        parameter.grad.fill_(float("nan"))
    expect(sluice.RemoteError, "is nan", optimizer.step)
    client = optimizer._client  # pylint: disable=protected-access
    assert client.status().complete == 0
    _begin(client, library.sluice_attach, b"note", b"x", 1)
    optimizer.wait()
    assert model.weight[0, 0] == 0.75, model.weight
    expect(sluice.RemoteError, "is nan", optimizer.step)
    client._waits[0] = True  # pylint: disable=protected-access # as if Ctrl-C had come before the error was raised
    expect(sluice.RemoteError, "is nan", optimizer.wait)
    optimizer.wait()
    assert model.weight[0, 0] == 0.75, model.weight
    optimizer.zero_grad()
    model.weight.grad = torch.full_like(model.weight, 0.5)
    optimizer._flat.gather_gradients()  # pylint: disable=protected-access
    _begin(client, library.sluice_push, 1, None, pulls=True)
    optimizer.wait()
    say("weight", model.weight[0, 0].item())
    optimizer.leave()


def _begin(client, function, *arguments, pulls=False):
    """Does what a call does until Ctrl-C comes right after its function has returned."""
    # pylint: disable=protected-access
    client._pulls, client._leaves = pulls, False
    client._call.begin(function, *arguments)


def interrupted_at_any_moment(job):
    """After each step that Ctrl-C may have interrupted, wait() leaves the parameters of the step that the server has made."""
    model = linear().bfloat16()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    armed = [False]

    def interrupt(*_):
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    delays, interrupted = random.Random(1), 0
    for _ in range(60):
        try:
            armed[0] = True
            signal.setitimer(signal.ITIMER_REAL, delays.uniform(0.0001, 0.004))
            push(model, optimizer, 2.0**-6)  # takes 2^-7 off, which bfloat16 can hold down to 0.5
            armed[0] = False
        except KeyboardInterrupt:
            interrupted += 1
        optimizer.wait()
        made = optimizer._client.status().step  # pylint: disable=protected-access
        assert model.weight[1, 1] == 1 - made * 2.0**-7, (model.weight, made)
    assert 0 < interrupted, "no step was interrupted"
    optimizer.await_end()
    say("done")


def groups_and_types(job):
    """Parameter groups, another element type, statistics, and a parameter that is not trained."""
    model = nn.Sequential(linear(), nn.BatchNorm1d(2), nn.Linear(2, 1).double())
    for parameter in model[2].parameters():
        nn.init.constant_(parameter, 3)
    model[0].bias.requires_grad_(False)
    model.register_buffer("mask", torch.full((2, 2), float("-inf")))
    model.register_buffer("scratch", torch.full((2, 2), float(os.getpid())), persistent=False)
    groups = [{"params": [model[0].weight, *model[1].parameters()]}, {"params": model[2].parameters(), "lr": 0.25},
              {"params": [model[0].bias], "lr": 0.125}]
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(groups, lr=0.5), job, model)
    optimizer.zero_grad()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model[1].running_mean.fill_(4 + 2 * optimizer.index)  # their mean is 5
    optimizer.step()
    optimizer.await_end()
    assert torch.isinf(model.mask).all() and (model.scratch == os.getpid()).all()
    say("weight", model[0].weight[0, 0].item(), "frozen", model[0].bias[0].item(), "double", model[2].weight[0, 0].item(),
        "mean", model[1].running_mean[0].item())


def forks(job):
    """Children of DataLoader load batches, however they begin; they neither use nor end the connection."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    data = torch.utils.data.TensorDataset(torch.ones(64, 3))
    for context in ("fork", "spawn", "forkserver"):
        loader = torch.utils.data.DataLoader(data, batch_sampler=sluice.DistributedSampler(data, 4, optimizer),
                                             num_workers=2, multiprocessing_context=context)
        for (rows,) in loader:
            assert rows.shape == (4, 3)
            push(model, optimizer, 0.25 / 3)
    child = os.fork()
    if child == 0:
        expect(RuntimeError, "is a fork", optimizer.step)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=starts_in_a_child)
    child.start()
    child.join()
    assert child.exitcode == 0
    optimizer.await_end()
    say("weight", round(model.weight[0, 0].item(), 4), "batches", len(loader))


def starts_in_a_child():
    expect(RuntimeError, "a child of a process that mpirun or srun has started", sluice.start)


def uses_mpi_too(job):
    """The program initialises MPI before it starts the job, and uses it while it trains and afterwards."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 1)
    assert not finalized()
    optimizer.await_end()
    say("weight", model.weight[0, 0].item())


def interrupted(job):
    """Ctrl-C reaches a worker that waits for another, which sleeps."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    if os.environ["NAME"] == "sleeper":
        say("sleeps")
        signal.pause()

    def tell():
        while not optimizer._client._waits[0]:  # pylint: disable=protected-access
            pass
        say("waits")

    threading.Thread(target=tell).start()
    try:
        push(model, optimizer, 1)
    except KeyboardInterrupt:
        say("interrupted")
        raise


def interrupted_and_goes_on(job):
    """Ctrl-C interrupts step(), which wait() ends: then the model has the parameters of one step."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model.double()), job, model)
    _until_interrupted(functools.partial(push, model, optimizer, 1), optimizer._client._waits)  # pylint: disable=protected-access
    optimizer.wait()
    say("weight", model.weight[0, 0].item(), "step", optimizer.last.step)
    push(model, optimizer, 1)
    optimizer.leave()
    say("weight", model.weight[0, 0].item(), "step", optimizer.last.step)


def interrupted_and_gone(job):
    """Ctrl-C interrupts step(), and the program forgets the optimizer and its model: the library has its memory."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    _until_interrupted(functools.partial(push, model, optimizer, 1), optimizer._client._waits)  # pylint: disable=protected-access
    del model, optimizer
    gc.collect()
    (flat, *_), = sys.modules["sluice.client"]._LEFT_BEHIND  # pylint: disable=protected-access
    while flat.values[0] == 1:
        pass
    say("weight", flat.values[0].item())


def _until_interrupted(call, waits):
    """Calls a function until Ctrl-C, and says when it waits: when `waits` holds True."""
    def tell():
        while not waits[0]:
            pass
        say("waits")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        call()
    except KeyboardInterrupt:
        thread.join()
        say("interrupted")


def pushes_when_told(job):
    model = linear()
    if os.environ.get("DOUBLE"):
        model.double()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    say("joined")
    for _ in sys.stdin:
        push(model, optimizer, 1)
    optimizer.leave()


def normalizes_when_told(job):
    """Each line has the value of a batch of equal rows. What is set by hand is a value, as in a step without a batch."""
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.5), nn.InstanceNorm1d(1, track_running_stats=True))
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    say("joined")
    for line in sys.stdin:
        optimizer.zero_grad()
        if line.startswith("set"):
            model[0].running_mean.fill_(float(line.split()[1]))
        else:
            model[0](torch.full((4, 1), float(line))).sum().backward()
        optimizer.step()
        say("mean", model[0].running_mean.item(), "variance", round(model[0].running_var.item(), 5), "stale",
            optimizer.last.staleness)
    optimizer.leave()


def follows(job):
    """A worker also follows its own job, which ends with what follows it."""
    model, seen = linear(), linear(bias=7)
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    follower = sluice.follow(seen, job)
    for step in range(3):
        assert next(follower) == step == follower.step and follower.incarnation == 1
        say("step", step, "weight", seen.weight[1, 2].item(), "bias", seen.bias[0].item())
        push(model, optimizer, 1)
    optimizer.leave()
    assert list(follower) == [3] and list(follower) == []
    say("weight", seen.weight[0, 0].item())


def follows_embeddings(job):
    """A follower has the rows of the step of its parameters."""
    def table_and_output():
        return nn.ModuleDict({"table": sluice.RemoteEmbedding(2, initializer="zero"), "output": linear()})
    model, seen = table_and_output(), table_and_output()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    ids = torch.tensor([[5, 3], [3, 5]])
    follower = sluice.follow(seen, job, look_up=lambda: seen["table"](ids))
    assert torch.equal(seen["table"](ids), torch.zeros(2, 2, 2))
    seen["table"].prefetch(torch.tensor([4]))  # does nothing
    for step in range(3):
        assert next(follower) == step
        say("step", step, "rows", seen["table"](ids[0]).tolist(), "bias", seen["output"].bias[0].item())
        optimizer.zero_grad()
        (model["table"](torch.tensor([3])).sum() + model["output"].bias.sum()).backward()
        optimizer.step()
    expect(sluice.ModelError, 'row 4 of "table"', lambda: seen["table"](torch.tensor([4])))
    optimizer.leave()
    assert list(follower) == [3]
    say("rows at the end", seen["table"](ids[0]).tolist())


def forgets_an_interrupted_follower(_job):
    """Ctrl-C interrupts a follower, and the program goes on without it."""
    follower = sluice.follow(linear(), server=os.environ["SLUICE_SERVER"])
    assert next(follower) == 0
    _until_interrupted(functools.partial(next, follower), follower._waits)  # pylint: disable=protected-access
    del follower
    gc.collect()
    freeing, = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    say("forgotten")
    freeing.join()
    say("freed")


def follows_what_is_wrong(job):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    error = expect(sluice.RemoteError, "weight", lambda: next(sluice.follow(nn.Linear(4, 2), job)))
    assert error.reason == "LAYOUT_MISMATCH", error.reason
    expect(ValueError, "leave one out", lambda: sluice.follow(model, job, server="127.0.0.1:1"))
    expect(ValueError, "at least 1 step", lambda: sluice.follow(model, job, every=0))
    error = expect(sluice.RemoteError, "--servre", lambda: sluice.follow(model, servre="127.0.0.1:1"))
    assert error.code == "INVALID_ARGUMENT", error.code
    expect(sluice.RemoteError, "no server: give --server", lambda: sluice.follow(model))
    # A follower is no part of the launch, whose MPI is over.
    expect(sluice.ServerGoneError, "127.0.0.1:1",
           lambda: next(sluice.follow(model, server="127.0.0.1:1", connect_timeout=0)))
    optimizer.leave()
    say("done")


def unknown_setting(_job):
    say("not reached")


def ends_without_leaving(job):
    """Ends at the end of the program, without leave(): it has left, and the other goes on alone."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 1)
    if optimizer.index == 1:
        return
    push(model, optimizer, 1)
    optimizer.leave()
    say("weight", model.weight[0, 0].item())


def _trains_and(job, end):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 1)
    end()


def _raises():
    raise ValueError("bad bätch")


def ends(job):
    """Ends as the environment says, without leave()."""
    how = os.environ["ENDS"]
    if how == "by an exception":
        _trains_and(job, _raises)
    elif how == "by its code":
        _trains_and(job, lambda: sys.exit(4))
    elif how == "by the code after an exception":
        try:
            _trains_and(job, _raises)
        except ValueError:
            code = 5
        sys.exit(code)
    elif how == "by an exception in a thread":
        thread = threading.Thread(target=_trains_and, args=(job, _raises))
        thread.start()
        thread.join()
    else:
        _trains_and(job, lambda: None)


def leaves_late(job):
    """Drops an optimizer, and goes on with something else."""
    _trains_and(job, lambda: None)
    say("dropped")
    sys.stdin.readline()


def server_dies(job):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    say("joined")
    sys.stdin.readline()  # until the server is dead
    error = expect(sluice.ServerGoneError, "did not come back", lambda: push(model, optimizer, 1))
    assert error.code == "UNAVAILABLE"
    say("gone")


def waits_let_threads_run(job):
    """While the worker waits for the others, other threads of Python run."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    if optimizer.index == 1:
        sys.stdin.readline()
        push(model, optimizer, 1)
    else:
        threading.Thread(target=lambda: say("another thread runs")).start()
        push(model, optimizer, 1)
    optimizer.leave()


def diverges(job):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    try:
        for _ in range(10000):
            optimizer.zero_grad()
            model.weight.grad.fill_(1)
            optimizer.step(loss=float("nan"))
    except sluice.DivergedError as error:
        say("diverged", error.reason)


def schedules(job):
    """Local steps are PyTorch's own, and so are their schedulers, where the server has no schedule."""
    model = linear()
    inner = sgd(model)
    optimizer = sluice.DistributedOptimizer(inner, job, model, local_steps=2, outer_momentum=0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(inner, 0.5)
    for _ in range(4):
        push(model, optimizer, 1)
        scheduler.step()
    assert model.weight.grad.sum() == 6
    optimizer.leave()
    say("weight", model.weight[0, 0].item())


class _Groups(nn.Module):
    """Two groups, of which the second has another rate and no weight decay."""

    def __init__(self, size):
        super().__init__()
        self.first = nn.Parameter(torch.linspace(-1, 1, size))
        self.second = nn.Parameter(torch.linspace(1, -1, 24))

    def optimizer(self, kind, **options):
        return kind([{"params": [self.first]}, {"params": [self.second], "lr": 0.01, "weight_decay": 0}], **options)


def _by_hand(optimizer):
    for step in range(20):
        optimizer.param_groups[1]["weight_decay"] = 0.1 / (1 + step)
        optimizer.param_groups[0]["lr"] *= 0.95
        yield


def _by(scheduler, **options):
    def run(optimizer):
        made = scheduler(optimizer, **options)
        for step in range(20):
            yield
            made.step(*([1 / (1 + step // 4)] if scheduler is torch.optim.lr_scheduler.ReduceLROnPlateau else []))
    return run


def _schedules(kind):
    of = torch.optim.lr_scheduler
    momentum = kind in (torch.optim.SGD, torch.optim.RMSprop)
    betas = kind in (torch.optim.Adam, torch.optim.AdamW)
    return [_by_hand, _by(of.StepLR, step_size=3, gamma=0.5), _by(of.MultiStepLR, milestones=[4, 9]),
            _by(of.LambdaLR, lr_lambda=[lambda step: min(1, step / 5), lambda step: 0.9 ** step]),
            _by(of.MultiplicativeLR, lr_lambda=lambda step: 0.9), _by(of.ExponentialLR, gamma=0.8),
            _by(of.CosineAnnealingLR, T_max=20), _by(of.CosineAnnealingWarmRestarts, T_0=5), _by(of.LinearLR),
            _by(of.PolynomialLR, total_iters=20), _by(of.ReduceLROnPlateau, patience=1),
            _by(of.OneCycleLR, max_lr=[0.1, 0.05], total_steps=30, cycle_momentum=momentum or betas),
            _by(of.CyclicLR, base_lr=0.01, max_lr=0.1, step_size_up=4, cycle_momentum=momentum),
            _by(torch.optim.swa_utils.SWALR, swa_lr=0.05, anneal_epochs=5)]


_SCHEDULED = {
    "sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"lr": 0.05, "amsgrad": True}), "adamw": (torch.optim.AdamW, {"lr": 0.05}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.05, "lr_decay": 0.01}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.05, "momentum": 0.9, "centered": True}),
}


def follows_schedulers(job):
    """Every scheduler of PyTorch, one after the other, does to the server's optimizer what it does to PyTorch's own."""
    kind, options = _SCHEDULED[sys.argv[2]]
    overlap = "--overlap" in sys.argv
    size = 200000 if overlap else 40  # so much is sent while backward computes the rest
    model, twin = _Groups(size), _Groups(size)
    own = twin.optimizer(kind, **options)
    inner = model.optimizer(kind, **options)
    early = torch.optim.lr_scheduler.LinearLR(inner, total_iters=2), torch.optim.lr_scheduler.LinearLR(own, total_iters=2)
    optimizer = sluice.DistributedOptimizer(inner, job, model, overlap=overlap)
    torch.manual_seed(1)
    steps, worst = 0, 0.0
    for run in [lambda stepped: _step_both(early, stepped, inner), *_schedules(kind)]:
        for _ in itertools.zip_longest(run(optimizer), run(own)):  # both to the end
            gradients = [torch.randn(size), torch.randn(24)]
            for trained, stepped in ((model, optimizer), (twin, own)):
                stepped.zero_grad()
                sum((p * g).sum() for p, g in zip(trained.parameters(), gradients)).backward()
            optimizer.step()
            own.step()
            steps += 1
            differ = max((a - b).abs().max().item() for a, b in zip(model.parameters(), twin.parameters()))
            worst = max(worst, differ / max(b.abs().max().item() for b in twin.parameters()))
    optimizer.leave()
    say("steps", steps, "largest difference", worst)


def _step_both(schedulers, stepped, inner):
    """For the schedulers that were made before the wrapper was, of the optimizer that it holds."""
    for _ in range(5):
        yield
        schedulers[0 if isinstance(stepped, sluice.DistributedOptimizer) else 1].step()
    assert inner._step_count >= 5  # else PyTorch warns
    saved = torch.optim.lr_scheduler.OneCycleLR(stepped, 0.05, 5, cycle_momentum=False).state_dict()
    torch.save(saved, io.BytesIO())


def changes_a_corrected_momentum(job):
    """With an encoding that has :momentum."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model, momentum=0.5), job, model)
    push(model, optimizer, 1)
    optimizer.param_groups[0]["lr"] = 1
    push(model, optimizer, 1)
    optimizer.param_groups[0]["momentum"] = 0.25
    expect(sluice.RemoteError, "a momentum that has changed from 0.5 to 0.25", optimizer.step)
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.leave()
    say("weight", model.weight[0, 0].item())


def has_other_options(job):
    """The options of worker 0 make the steps, and the other one is warned, once."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    for step in range(4):
        optimizer.param_groups[0]["lr"] = 0.25 if optimizer.index == 0 else 0.125
        push(model, optimizer, 1)
    optimizer.leave()
    say("weight", model.weight[0, 0].item())


def keeps_a_gradient(job):
    """The memory of a gradient is there as long as somebody has it."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    push(model, optimizer, 1)
    gradient = model.weight.grad
    optimizer.leave()
    del optimizer
    gc.collect()
    say("gradient", gradient.sum().item())


def new_pytorch(job):
    """PyTorch 2.7 makes AdamW an Adam whose groups have an option more."""
    model = linear()
    inner = torch.optim.AdamW(model.parameters(), lr=0.5)
    inner.param_groups[0]["decoupled_weight_decay"] = True
    sluice.DistributedOptimizer(inner, job, model).leave()
    say("done")


def frozen(job):
    """What is not trained keeps its bits, though means of three workers round."""
    torch.manual_seed(3)
    model = nn.Linear(50, 50)
    model.weight.requires_grad_(False)
    before = model.weight.clone()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    for _ in range(5):
        optimizer.zero_grad()
        optimizer.step()
    optimizer.await_end()
    say("same", torch.equal(before, model.weight))


def attaches(job):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    optimizer.attach("test", b"\0bytes")
    error = expect(sluice.RemoteError, "", lambda: optimizer.attach("test", bytes(1 << 20)))
    assert error.reason == "BAD_ARGUMENT"
    push(model, optimizer, 1)
    optimizer.leave()
    say("done")


class Recommender(nn.Module):
    """A model with two tables, or a twin of it whose rows are parameters."""

    def __init__(self, items, tags):
        super().__init__()
        self.items = items
        self.tags = tags
        self.output = nn.Linear(7, 1, bias=False)
        nn.init.constant_(self.output.weight, 0.5)

    def forward(self, ids, bags):
        return self.output(torch.cat([self.items(ids), self.tags(bags)], 1)).sum() ** 2


def _batch(step, worker):
    """Returns 4 ids, of which some are there twice, and 4 bags of 2."""
    ids = [(step * 5 + worker * 3 + i * i) % 8 for i in range(4)]
    return torch.tensor(ids), torch.tensor([[id_, (id_ * 3 + step) % 8] for id_ in ids])


def trains_embeddings(job, prefetch=False):
    remote = Recommender(sluice.RemoteEmbedding(4, initializer="uniform", scale=0.5, seed=7),
                         sluice.RemoteEmbeddingBag(3, mode="sum", optimizer=(torch.optim.Adagrad, {"lr": 0.25})))
    expect(sluice.ModelError, "has no rows before", lambda: remote.items(torch.tensor([1])))
    optimizer = sluice.DistributedOptimizer(sgd(remote), job, remote)
    everything = torch.arange(8)
    twin = Recommender(nn.Embedding(8, 4), nn.EmbeddingBag(8, 3, mode="sum"))
    with torch.no_grad():
        twin.items.weight.copy_(remote.items(everything))
        twin.tags.weight.copy_(remote.tags(everything.unsqueeze(1)))
    assert twin.items.weight.abs().max() <= 0.5 and twin.items.weight.unique().numel() == 32
    own = torch.optim.Adagrad(twin.tags.parameters(), lr=0.25)
    others = torch.optim.SGD([twin.items.weight, twin.output.weight], lr=0.5)
    for step in range(6):
        optimizer.zero_grad()
        loss = remote(*_batch(step, optimizer.index)) / 256
        loss.backward()
        if prefetch and step % 3 < 2:
            _prefetch(remote, step + 1, optimizer)  # of an earlier step than the batch that uses it
        optimizer.step(loss=loss)
        own.zero_grad()
        others.zero_grad()
        for worker in range(2):
            (twin(*_batch(step, worker)) / 512).backward()
        own.step()
        others.step()
        with torch.no_grad():
            torch.testing.assert_close(remote.items(everything), twin.items.weight, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(remote.tags(everything.unsqueeze(1)), twin.tags.weight, rtol=1e-5, atol=1e-6)
        if prefetch and step % 3 > 0:
            _prefetch(remote, step + 1, optimizer)
    if optimizer.index == 0:
        say("items", remote.items(everything).tolist())
        say("tags", remote.tags(everything.unsqueeze(1)).tolist())
    optimizer.await_end()
    say("the same as its twin")


def trains_rows_with_momentum(job):
    """Row 3 is in each step, row 5 in every second one. Each gradient is 1, of both workers."""
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1, initializer="zero"), "output": linear()})
    optimizer = sluice.DistributedOptimizer(sgd(model, momentum=0.5), job, model)
    velocity, expected = {3: 0, 5: 0}, {3: 0, 5: 0}
    for step in range(6):
        ids = [3, 5] if step % 2 == 0 else [3]
        optimizer.zero_grad()
        (model["table"](torch.tensor(ids)).sum() + model["output"].bias.sum()).backward()
        optimizer.step()
        for id_ in ids:
            velocity[id_] = 0.5 * velocity[id_] + 1
            expected[id_] -= 0.5 * velocity[id_]
    with torch.no_grad():
        rows = model["table"](torch.tensor([3, 5])).flatten().tolist()
    assert rows == [expected[3], expected[5]], (rows, expected)
    optimizer.await_end()
    say("momentum of rows as expected")


def has_rows_at_the_end(job):
    """Worker 0 ends after 2 steps, worker 1 after 5. Each gradient of row 3 is 1."""
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1, initializer="zero"), "output": linear()})
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    for _ in range(2 if optimizer.index == 0 else 5):
        optimizer.zero_grad()
        (model["table"](torch.tensor([3])).sum() + model["output"].bias.sum()).backward()
        optimizer.step()
    model["table"].prefetch(torch.tensor([3, 4]))
    optimizer.await_end()
    model.eval()
    for _ in range(2):
        say("at the end", model["table"](torch.tensor([[3], [4]])).tolist())
        model["table"].prefetch(torch.tensor([3, 4]))
    optimizer.report(test_error=0.5)
    for call in (model["table"], model["table"].prefetch):
        expect(sluice.RemoteError, "before it reports", lambda call=call: call(torch.tensor([3])))


def _prefetch(model, step, optimizer):
    ids, bags = _batch(step, optimizer.index)
    model.items.prefetch(ids)
    model.tags.prefetch(bags)


def trains_prefetched_embeddings(job):
    trains_embeddings(job, prefetch=True)


def prefetches(job):
    """The server's own counter tells how many rows it has read."""
    def reads():
        with urllib.request.urlopen(os.environ["METRICS"]) as answer:
            line, = [line for line in answer.read().decode().splitlines() if line.startswith("sluice_table_reads_total{")]
        return int(float(line.split()[-1]))

    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1, initializer="zero"), "output": nn.Linear(1, 1)})
    table = model["table"]
    expect(sluice.ModelError, "has no rows before", lambda: table.prefetch(torch.tensor([1])))
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    expect(sluice.ModelError, "the id -4", lambda: table.prefetch(torch.tensor([3, -4])))
    expect(sluice.ModelError, "torch.float32", lambda: table.prefetch(torch.tensor([3.0])))
    expect(sluice.ModelError, "ids of 3 dimensions, expected 1 or 2",
           lambda: sluice.RemoteEmbeddingBag(1).prefetch(torch.zeros(1, 1, 1, dtype=torch.int64)))
    table(torch.tensor([4, 3])).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    say("pulled", reads())
    # Used once, by a batch with the same ids in another order, of other types and shapes.
    table.prefetch(torch.tensor([4, 3, 4], dtype=torch.int32))
    say("used", table(torch.tensor([[3], [4]])).tolist(), reads())
    say("used once", table(torch.tensor([3, 4])).tolist(), reads())
    # Older than the parameters when it is used: pulled again.
    table.prefetch(torch.tensor([3]))
    table(torch.tensor([3, 3])).sum().backward()
    table.prefetch(torch.tensor([3]))
    optimizer.step()
    optimizer.zero_grad()
    say("after a step", table(torch.tensor([3])).tolist(), reads())
    # A step that the server refuses changes nothing.
    table.prefetch(torch.tensor([3]))
    model["output"].bias.grad.fill_(float("nan"))
    expect(sluice.RemoteError, "output.bias", optimizer.step)
    optimizer.zero_grad()
    say("after a refused step", table(torch.tensor([3])).tolist())
    # Given up for other ids, for another prefetch, and for none.
    for given_up, then in (([4], []), ([3], [5]), ([3, 5], [])):
        table.prefetch(torch.tensor(given_up))
        if then:
            table.prefetch(torch.tensor(then))
        rows = table(torch.tensor([5, 3])).tolist()
        assert rows == [[0.0], [-1.5]], rows
    table.prefetch(torch.tensor([3]))
    table.prefetch(torch.empty(0, dtype=torch.int64))
    assert table(torch.empty(0, dtype=torch.int64)).shape == (0, 1)
    say("given up", table(torch.tensor([3])).tolist())
    child = os.fork()
    if child == 0:
        expect(RuntimeError, "is a fork", lambda: table.prefetch(torch.tensor([3])))
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    table.prefetch(torch.tensor([3]))
    optimizer.leave()
    for call in (table.prefetch, table):
        expect(sluice.RemoteError, "pull them before it leaves", lambda call=call: call(torch.tensor([3])))


def prefetches_of_a_server_that_is_gone(job):
    """A prefetch raises nothing: the forward that uses it does."""
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1), "output": nn.Linear(1, 1)})
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    say("joined")
    sys.stdin.readline()  # until the server is dead
    model["table"].prefetch(torch.tensor([3]))
    expect(sluice.ServerGoneError, "did not come back", lambda: model["table"](torch.tensor([3])))
    del optimizer
    say("gone")


class Factors(nn.Module):
    """Two factors of a matrix, and nothing else; or a twin of them whose rows are parameters."""

    def __init__(self, rows, columns):
        super().__init__()
        self.rows = rows
        self.columns = columns

    def forward(self, rows, columns):
        return (self.rows(rows) * self.columns(columns)).sum(1)


def _cells(step, worker):
    """Returns 4 cells of a matrix of 8 x 8."""
    rows = torch.tensor([(step * 3 + worker * 5 + i) % 8 for i in range(4)])
    return rows, (rows * 3 + step) % 8


def trains_tables_only(job):
    none = torch.optim.SGD([{"params": []}], lr=0.5)
    expect(sluice.ModelError, "no parameter of the optimizer requires a gradient, and `model` has no RemoteEmbedding",
           lambda: sluice.DistributedOptimizer(none, job, nn.Module()))
    def remote_factors():
        return Factors(*[sluice.RemoteEmbedding(3, initializer="uniform", scale=0.5, seed=seed) for seed in (1, 2)])
    remote, seen = remote_factors(), remote_factors()
    optimizer = sluice.DistributedOptimizer(none, job, remote)
    assert [group["params"] for group in optimizer.param_groups] == [[]]
    everything = torch.arange(8)
    first = optimizer.last is None and int(optimizer._client.status().step)  # pylint: disable=protected-access
    follower = sluice.follow(seen, job, look_up=lambda: seen(everything, everything))
    twin = Factors(nn.Embedding(8, 3), nn.Embedding(8, 3))
    with torch.no_grad():
        twin.rows.weight.copy_(remote.rows(everything))
        twin.columns.weight.copy_(remote.columns(everything))
    others = torch.optim.SGD(twin.parameters(), lr=0.5)
    for step in range(5):
        optimizer.zero_grad()
        loss = (remote(*_cells(step, optimizer.index)) - 1).square().mean()
        loss.backward()
        optimizer.step(samples=4, loss=loss)
        assert optimizer.last.step == first + step + 1, optimizer.last
        others.zero_grad()
        for worker in range(2):
            ((twin(*_cells(step, worker)) - 1).square().mean() / 2).backward()
        others.step()
        with torch.no_grad():
            torch.testing.assert_close(remote.rows(everything), twin.rows.weight, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(remote.columns(everything), twin.columns.weight, rtol=1e-5, atol=1e-6)
    assert next(follower) == first + 5
    with torch.no_grad():
        assert torch.equal(seen.rows(everything), remote.rows(everything))
    if optimizer.index == 0:
        say("rows", remote.rows(everything).tolist())
    optimizer.await_end()
    say("step", first + 5)


def pushes_tables_when_told(job):
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1, initializer="zero")})
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD([{"params": []}], lr=0.5), job, model)
    say("joined")
    for _ in sys.stdin:
        optimizer.zero_grad()
        row = model["table"](torch.tensor([7]))
        row.sum().backward()
        optimizer.step()
        say("row", row.item(), "step", optimizer.last.step, optimizer.last.disposition)
    optimizer.leave()


def embeddings_and_what_users_do(job):
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(2, initializer="zero"), "output": nn.Linear(2, 1)})
    model["again"] = model["table"]  # tied
    expect(sluice.ModelError, "leave local_steps out",
           lambda: sluice.DistributedOptimizer(sgd(model), job, model, local_steps=2))
    expect(sluice.ModelError, "expected one of PyTorch's SGD, Adam", lambda: sluice.DistributedOptimizer(
        sgd(model), job, nn.ModuleDict({**model, "x": sluice.RemoteEmbedding(2, optimizer=(torch.optim.Rprop, {}))})))
    expect(sluice.ModelError, "initializer is 'ones'", lambda: sluice.RemoteEmbedding(2, initializer="ones"))
    expect(sluice.RemoteError, "expected 1 to 65536", lambda: sluice.DistributedOptimizer(
        sgd(model), job, nn.ModuleDict({**model, "x": sluice.RemoteEmbedding(0)})))
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    items = model["table"]
    assert list(model.state_dict()) == ["output.weight", "output.bias"] and "width=2" in repr(items)
    expect(sluice.ModelError, "the id -4", lambda: items(torch.tensor([3, -4])))
    expect(sluice.ModelError, "torch.float32", lambda: items(torch.tensor([3.0])))
    expect(sluice.ModelError, "give it look_up=FUNCTION", lambda: sluice.follow(model, job))
    expect(sluice.ModelError, "has no rows", lambda: copy.deepcopy(items)(torch.tensor([3])))
    nothing = items(torch.empty((0, 3), dtype=torch.int64))
    assert nothing.shape == (0, 3, 2) and nothing.requires_grad
    assert torch.equal(items(torch.tensor([3, 4], dtype=torch.int32)), torch.zeros(2, 2))
    # Forwards of several calls count together; ids of any shape and of 63 bits; a repeated id.
    far = 2**63 - 1
    first = items(torch.tensor([[far, 1], [1, 1]]))
    assert first.shape == (2, 2, 2)
    second = items(torch.tensor([far], dtype=torch.int64))
    (first.sum() + 2 * second.sum()).backward()
    optimizer.step()
    say("rows", items(torch.tensor([far, 1, 5])).tolist())
    # A gradient that is dropped, and one whose backward comes after a step.
    items(torch.tensor([5])).sum().backward()
    optimizer.zero_grad()
    late = items(torch.tensor([5]))
    optimizer.step()
    optimizer.zero_grad()
    late.sum().backward()
    # A step that the server refuses leaves the gradients; one that succeeds does not.
    model["output"].bias.grad.fill_(float("nan"))
    expect(sluice.RemoteError, "output.bias", optimizer.step)
    model["output"].bias.grad.zero_()
    optimizer.step()
    optimizer.step()
    model.eval()
    assert not items(torch.tensor([5])).requires_grad
    say("row", items(torch.tensor([5])).tolist(), "step", optimizer.last.step)
    optimizer.leave()


def bags_in_odd_forms(job):
    model = nn.ModuleDict({"bag": sluice.RemoteEmbeddingBag(2, initializer="uniform", scale=1, mode="mean"),
                           "output": nn.Linear(2, 1)})
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    bag = model["bag"]
    ids = torch.tensor([7, 2, 7])
    with torch.no_grad():
        weight = bag(torch.arange(8).unsqueeze(1))
    for offsets in ([0, 2], [0, 0, 2, 3], [0]):
        begins = torch.tensor(offsets, dtype=torch.int32)
        expected = nn.functional.embedding_bag(ids, weight, begins.long(), mode="mean")
        torch.testing.assert_close(bag(ids, begins), expected)
    for empty in (bag(ids[:0], torch.tensor([0, 0])), bag(ids[:0].view(2, 0))):
        assert torch.equal(empty, torch.zeros(2, 2)) and empty.requires_grad
    expect(sluice.ModelError, "offset 1 of bag 2, expected 2 to 3", lambda: bag(ids, torch.tensor([0, 2, 1])))
    expect(sluice.ModelError, "offset 4 of bag 1, expected 0 to 3", lambda: bag(ids, torch.tensor([0, 4])))
    expect(sluice.ModelError, "offset 1 of bag 0, expected 0", lambda: bag(ids, torch.tensor([1])))
    expect(sluice.ModelError, "offsets of torch.float32", lambda: bag(ids, torch.tensor([0.0])))
    expect(sluice.ModelError, "offsets of 2 dimensions", lambda: bag(ids, torch.tensor([[0]])))
    expect(sluice.ModelError, "ids of 2 dimensions, expected 1", lambda: bag(ids.view(1, 3), torch.tensor([0])))
    expect(sluice.ModelError, "ids of 1 dimensions, expected 2", lambda: bag(ids))
    optimizer.leave()
    say("done")


def uses_rows_again(job, prefetch=False):
    model = nn.ModuleDict({"table": sluice.RemoteEmbedding(1, initializer="zero"), "output": nn.Linear(1, 1)})
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    seen = []
    for _ in range(4):
        row = model["table"](torch.tensor([7]))
        seen.append(row.item())
        row.sum().backward()
        if prefetch:
            model["table"].prefetch(torch.tensor([7]))
        optimizer.step()
        optimizer.zero_grad()
    say("seen", seen)
    optimizer.leave()


def uses_prefetched_rows_again(job):
    uses_rows_again(job, prefetch=True)


def has_other_default_types(job):
    """Memory that the library reads and writes has its own types, whatever PyTorch's defaults are."""
    kind = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16}[os.environ["DEFAULT"]]
    torch.set_default_tensor_type(torch.tensor([], dtype=kind).type())
    table = {"initializer": "uniform", "scale": 1.0, "seed": 3}
    model = nn.ModuleDict({"rows": sluice.RemoteEmbedding(4, **table), "bag": sluice.RemoteEmbeddingBag(4, **table),
                           "output": nn.Linear(4, 1).float(), "norm": nn.BatchNorm1d(4)})
    assert model["norm"].running_mean.dtype == kind
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    seen = sluice.follow(model, job, look_up=lambda: model["rows"](torch.arange(3)))
    next(seen)
    followed = model["rows"](torch.arange(3)).tolist()
    for embedding in (model["rows"], model["bag"]):
        embedding.bind(list(model).index("rows" if embedding is model["rows"] else "bag"), optimizer)
    first = model["rows"](torch.arange(3)).tolist()
    assert followed == first, (followed, first)
    bags = model["bag"](torch.tensor([[1, 1]]))
    assert bags.dtype == torch.float32
    (model["rows"](torch.tensor([0, 1])).sum() + 2 * model["rows"](torch.tensor([1, 2])).sum()).backward()
    optimizer.step()
    moved = [[round(before - after, 5) for before, after in zip(*rows)]
             for rows in zip(first, model["rows"](torch.arange(3)).tolist())]
    expect(TypeError, "of torch.float64 on cpu of shape [2, 4], contiguous; expected torch.float32 on cpu of shape [2, 4]",
           lambda: optimizer.pull_rows(0, torch.tensor([0, 1]), torch.empty(2, 4, dtype=torch.float64)))
    expect(TypeError, "of shape [3, 4]", lambda: optimizer.pull_rows(0, torch.arange(2), torch.empty(3, 4).float()))
    optimizer.leave()
    say("first", [round(value, 4) for value in first[0]], "moved", moved)


class Averaged(nn.Module):
    """Its buffers are replaced by each forward, as users write it."""

    def __init__(self):
        super().__init__()
        self.linear = linear()
        self.register_buffer("ema", torch.zeros(3))
        self.register_buffer("wide", torch.zeros(3, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("later", None)
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        self.ema = 0.5 * self.ema + 0.5 * x.mean(0)
        self.wide = 0.5 * self.wide + 0.5 * x.mean(0).double()
        self.seen = self.seen + 1
        self.scratch = torch.full((1,), float(os.getpid()))
        return self.linear(x)


def replaces_buffers(job):
    model, follower = Averaged(), Averaged()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    steps = sluice.follow(follower, job) if optimizer.index == 0 else None
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 3), 2.0 + 4 * optimizer.index)).sum().backward()
        optimizer.step()
    if steps is not None:
        follower(torch.zeros(2, 3))
        next(steps)
        assert follower.ema.tolist() == model.ema.tolist(), follower.ema
    optimizer.await_end()
    say("ema", model.ema[0].item(), "wide", model.wide[0].item(), "seen", model.seen.item())


def changes_tensors_too_late(job):
    model = nn.Sequential(linear(), nn.BatchNorm1d(2))
    model.tied = nn.Module()
    model.tied.register_buffer("mean", model[1].running_mean)
    model.register_buffer("ema", torch.zeros(2))
    model.register_buffer("later", None)
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)

    def assigns(path, value):
        *outer, key = path.split(".")
        return lambda: setattr(functools.reduce(getattr, outer, model), key, value)
    changes = {
        "0.weight was replaced": assigns("0.weight", nn.Parameter(torch.ones(2, 3))),
        "0.bias was removed": assigns("0.bias", None),
        "ema was removed": lambda: delattr(model, "ema"),
        "later was added": assigns("later", torch.ones(2)),
        "new was added": lambda: model.register_parameter("new", nn.Parameter(torch.ones(1))),
        "head was added": lambda: model.add_module("head", nn.Linear(2, 1)),
        "1 was replaced": assigns("1", nn.BatchNorm1d(2)),
        "1.running_mean was replaced": assigns("1.running_mean", torch.zeros(2)),
        "ema has torch.float64 on cpu": assigns("ema", torch.zeros(2, dtype=torch.float64)),
        "ema has torch.float32 and shape [3]": assigns("ema", torch.zeros(3)),
        "0.weight was removed": lambda: nn.utils.parametrize.register_parametrization(model[0], "weight", nn.Identity()),
        "ema has torch.float16 on cpu, and had torch.float32 on cpu": model.half,
    }
    # pylint: disable=protected-access
    before = [(module, kind, dict(getattr(module, kind))) for module in model.modules()
              for kind in ("_parameters", "_buffers", "_modules")]
    for text, change in changes.items():
        optimizer.step()
        change()
        expect(sluice.ModelError, text, optimizer.step)
        expect(sluice.ModelError, text, optimizer.step)  # and again
        for module, kind, entries in before:
            getattr(module, kind).clear()
            getattr(module, kind).update(entries)
        model[0].__class__ = nn.Linear
    say("done", optimizer.last.step)


def carries_constants(job):
    """What no batch changes keeps its bits, whatever it is, beside a buffer that batches change."""
    model = linear()
    values = torch.tensor([0.1, 1 / 3, 1e-30, 5e-42, torch.finfo(torch.float32).min])
    wide = torch.tensor([1700000123.456, 0.1], dtype=torch.float64)
    buffers = {"before": values, "ema": torch.zeros(1), "mask": values, "wide": wide, "empty": torch.zeros(0, 3),
               "huge": torch.tensor([1e300], dtype=torch.float64)}
    frozen = {"frozen": values, "wide_frozen": wide, "base": torch.ones(4, dtype=torch.int8), "nothing": torch.zeros(0)}
    for name, tensor in buffers.items():
        model.register_buffer(name, tensor.clone())
    for name, tensor in frozen.items():
        model.register_parameter(name, nn.Parameter(tensor.clone(), requires_grad=False))
    trained = [model.weight, model.bias]
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(trained, lr=0.5), job, model,
                                            local_steps=int(os.environ.get("LOCAL_STEPS", "0")))
    for _ in range(6):
        optimizer.zero_grad()
        model.ema.copy_(0.5 * model.ema + 0.5 * (1 + optimizer.index))
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    optimizer.await_end()
    for name, tensor in {**buffers, **frozen}.items():
        assert name == "ema" or torch.equal(model.state_dict()[name], tensor), (name, model.state_dict()[name])
    say("carried, ema", model.ema.item())


def digest(state):
    """Of the bits of all tensors, so that two models with the same have them equal, down to the sign of 0."""
    return zlib.crc32(b"".join(state[name].detach().resolve_conj().contiguous().numpy().tobytes() for name in sorted(state)))


class Carrying(nn.Module):
    """Each process makes other tensors of all types that no worker trains, and counts its batches."""

    def __init__(self):
        super().__init__()
        self.linear = linear()
        self.norm = nn.BatchNorm1d(2, momentum=None)
        self.counted = nn.BatchNorm1d(1, affine=False)
        self.base = nn.Parameter(torch.randint(-128, 127, (5, 3), dtype=torch.int8), requires_grad=False)
        self.frozen = nn.Parameter(torch.randn(4).double(), requires_grad=False)
        mask = torch.zeros(4).masked_fill_(torch.rand(4) < 0.5, float("-inf"))
        mask[0] = float("-inf")  # at least one: without any, it would be averaged
        buffers = {"order": torch.randperm(40), "mask": mask, "flag": torch.rand(3) < 0.5, "wave": torch.randn(2) + 1j,
                   "nothing": torch.zeros(0, 2), "minus": torch.tensor([-0.0, 0.0]), "wide": torch.rand(2).double() + 1e9,
                   "turned": torch.randn(2, 3).half().t(), "scalar": torch.tensor(random.getrandbits(60)), "repeated": torch.randperm(9)[:1].expand(4),
                   "turned_over": torch.tensor([1 + 2j]).conj()}
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, batch):
        if self.training:  # as old modules of batch normalization write it
            self.counted.num_batches_tracked = self.counted.num_batches_tracked + 1
        return self.norm(self.linear(batch))


def shares_all_state(job):
    """All workers, and those of the next launch, have the state of the first one."""
    torch.manual_seed(os.getpid())
    random.seed(os.getpid())
    model = Carrying()
    trained = [*model.linear.parameters(), *model.norm.parameters()]
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(trained, lr=0.5), job, model)
    joined = digest({name: tensor for name, tensor in model.state_dict().items() if not name.startswith(("linear", "norm", "counted"))})
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * torch.arange(4).view(4, 1)).sum().backward()
        optimizer.step()
    optimizer.await_end()
    say("joined", joined, "ended", digest(model.state_dict()), "batches", int(model.norm.num_batches_tracked))
    assert model.counted.num_batches_tracked == model.norm.num_batches_tracked


def unfreezes(job):
    """A frozen parameter that the program changes is not trained, and a warning says so."""
    model = nn.Sequential(linear(), linear())
    model[1].requires_grad_(False)
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model[0].parameters(), lr=0.5), job, model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            model[1].weight.data = 0.5 * model[1].weight.data  # as target networks are written
            push(model[0], optimizer, 1)
    optimizer.leave()
    say("warned", len(caught), caught[0].message)


def knows_its_place(job):
    rank, size = job.rank, job.size
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    assert (optimizer.index, optimizer.workers) == (rank, size)
    push(model, optimizer, 1)
    optimizer.leave()
    say("rank", rank, "of", f"{size},", "the same after the join")


def counts_rows(job):
    """Counts in the parameters how often a step has used each row; begins when told; waits after the step STOP."""
    model = nn.ParameterDict({"used": nn.Parameter(torch.zeros(96))})
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1), job, model)
    sampler = sluice.DistributedSampler(96, 4, optimizer)
    loader = torch.utils.data.DataLoader(range(96), batch_sampler=sampler)
    say("joined")
    sys.stdin.readline()
    steps = 0
    for epoch in range(int(os.environ["EPOCHS"])):
        if "SETS_EPOCH" in os.environ:
            sampler.set_epoch(epoch)
        for rows in loader:
            optimizer.zero_grad()
            (-model["used"][rows]).sum().backward()
            optimizer.step()
            steps += 1
            if steps == int(os.environ.get("STOP", "0")):
                say("waits")
                sys.stdin.readline()
    optimizer.await_end()
    say("steps", steps, "used", sorted(set(model["used"].tolist())))


if __name__ == "__main__":
    globals()[sys.argv[1]](started)
