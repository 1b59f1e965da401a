#!/usr/bin/python3
"""Workers in Python that play a scenario each: scenarios.py NAME [FLAG…]. python_test.py starts them."""

import gc
import os
import signal
import sys
import threading

import sluice
import torch
from torch import nn


def linear(bias=2.0):
    """Returns a model whose weights are 1 and whose bias is `bias`."""
    model = nn.Linear(3, 2)
    nn.init.ones_(model.weight)
    nn.init.constant_(model.bias, bias)
    return model


def push(model, optimizer, gradient):
    optimizer.zero_grad()
    for parameter in model.parameters():
        parameter.grad.fill_(gradient)
    optimizer.step()


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.5, **options)


def expect(kind, text, call):
    """Calls a function that must raise an error of that class with that text."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def say(*words):
    """Prints a line at once, and whole: ranks share the terminal."""
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def what_is_wrong(job):
    model = linear()
    expect(sluice.ModelError, "SGD, Adam, AdamW, Adagrad, RMSprop",
           lambda: sluice.DistributedOptimizer(torch.optim.Rprop(model.parameters()), job))
    expect(sluice.ModelError, "maximize=True", lambda: sluice.DistributedOptimizer(sgd(model, maximize=True), job))
    expect(sluice.ModelError, "none of `model`'s", lambda: sluice.DistributedOptimizer(sgd(model), job, linear()))
    expect(sluice.ModelError, "torch.complex64", lambda: sluice.DistributedOptimizer(
        torch.optim.SGD([nn.Parameter(torch.ones(2, dtype=torch.complex64))], lr=1), job))
    expect(sluice.ModelError, "0 has shape [0]", lambda: sluice.DistributedOptimizer(
        torch.optim.SGD([nn.Parameter(torch.ones(0))], lr=1), job))
    expect(ValueError, "use one of them", lambda: sluice.DistributedOptimizer(sgd(model), job, overlap=True, local_steps=2))
    expect(ValueError, "called twice", sluice.start)
    error = expect(sluice.RemoteError, "SGD's learning_rate is -1", lambda: sluice.DistributedOptimizer(
        _with_rate(sgd(model), -1), job))
    assert (error.code, error.reason) == ("INVALID_ARGUMENT", "BAD_OPTIMIZER"), (error.code, error.reason)
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    expect(sluice.ModelError, "--checkpoint-dir", lambda: optimizer.load_state_dict({}))
    expect(sluice.ModelError, "add them to the optimizer before", lambda: optimizer.add_param_group({}))
    expect(sluice.RemoteError, "after sluice_await_end", lambda: optimizer.report(loss=1))
    push(model, optimizer, 1)
    optimizer.param_groups[0]["lr"] = 0.1
    expect(sluice.ModelError, "learning_rate was 0.5", optimizer.step)
    optimizer.param_groups[0]["lr"] = 0.5
    model.weight.data = model.weight.data.clone()
    expect(sluice.ModelError, "weight lies in other memory", optimizer.step)
    optimizer.leave()
    expect(sluice.RemoteError, "after leave()", optimizer.step)
    say("done")


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
    optimizer.await_end()
    say("weight", model.weight[1, 2].item(), "bias", model.bias[0].item(), "step", optimizer.last.step,
        optimizer.last.disposition)


def groups_and_types(job):
    """Parameter groups, another element type, statistics, and a parameter that is not trained."""
    model = nn.Sequential(linear(), nn.BatchNorm1d(2), nn.Linear(2, 1).double())
    for parameter in model[2].parameters():
        nn.init.constant_(parameter, 3)
    model[0].bias.requires_grad_(False)
    groups = [{"params": [model[0].weight, *model[1].parameters()]}, {"params": model[2].parameters(), "lr": 0.25}]
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(groups, lr=0.5), job, model)
    optimizer.zero_grad()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model[1].running_mean.fill_(4 + 2 * optimizer.index)  # their mean is 5
    optimizer.step()
    optimizer.await_end()
    say("weight", model[0].weight[0, 0].item(), "frozen", model[0].bias[0].item(), "double", model[2].weight[0, 0].item(),
        "mean", model[1].running_mean[0].item())


def forks(job):
    """Children of DataLoader load batches; they neither use nor end the connection."""
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    data = torch.utils.data.TensorDataset(torch.ones(64, 3))
    loader = torch.utils.data.DataLoader(data, batch_sampler=sluice.DistributedSampler(data, 4, optimizer), num_workers=2)
    for (rows,) in loader:
        assert rows.shape == (4, 3)
        push(model, optimizer, 0.25)
    child = os.fork()
    if child == 0:
        expect(RuntimeError, "is a fork", optimizer.step)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    optimizer.await_end()
    say("weight", model.weight[0, 0].item(), "batches", len(loader))


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


def attaches(job):
    model = linear()
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    optimizer.attach("test", b"\0bytes")
    error = expect(sluice.RemoteError, "", lambda: optimizer.attach("test", bytes(1 << 20)))
    assert error.reason == "BAD_ARGUMENT"
    push(model, optimizer, 1)
    optimizer.leave()
    say("done")


if __name__ == "__main__":
    started = sluice.start()
    if started.is_server:
        sys.exit(started.serve())
    globals()[sys.argv[1]](started)
