#!/usr/bin/python3
"""Workers that step themselves: worker_steps.py SCENARIO [ARGUMENT…] [--sluice-…]. worker_steps_test.py starts them."""

import json
import os
import signal
import sys
import warnings
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


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2. Counts its steps in its groups."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            fast, slow = group["betas"]
            group["steps"] = group.get("steps", 0) + 1
            for parameter in group["params"]:
                state = self.state[parameter]
                mean = state.setdefault("exp_avg", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_((mean * fast + parameter.grad * (1 - fast)).sign(), alpha=group["lr"])
                mean.mul_(slow).add_(parameter.grad, alpha=1 - slow)


KINDS = {
    "adadelta": lambda groups: torch.optim.Adadelta(groups, lr=1.0),
    "nadam": torch.optim.NAdam,
    "radam": lambda groups: torch.optim.RAdam(groups, lr=0.01),
    "adamax": torch.optim.Adamax,
    "asgd": torch.optim.ASGD,
    "rprop": torch.optim.Rprop,
    "lion": Lion,
    "maximize": lambda groups: torch.optim.SGD(groups, lr=1e-3, momentum=0.5, maximize=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=0.01),
}


def model_of(width=8, dtype=torch.float32):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, width, bias=False), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 2)).to(dtype)


def optimizer_of(kind, model):
    biases = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    return KINDS[kind]([{"params": others}, {"params": biases, "lr": 0.005}])


def loss_of(model, step, worker, offset=0.0):
    """Of a batch that depends on the two numbers only."""
    inputs = torch.randn(5, 6, generator=torch.Generator().manual_seed(1000 * step + worker))
    dtype = next(model.parameters()).dtype
    return ((model(inputs.to(dtype)) - inputs[:, :2].to(dtype) * 2 + 1 + offset)**2).mean()


def schedule_of(optimizer, steps):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.02, 0.01], total_steps=steps, cycle_momentum=False)


def checksum(values):
    return format(zlib.crc32(b"".join(value.detach().double().numpy().tobytes() for value in values)), "08x")


def state_of(model, optimizer):
    """Returns a checksum of the model, and one of the optimizer's state."""
    state = optimizer.state_dict()["state"]
    tensors = [value for entry in state.values() for value in entry.values() if isinstance(value, torch.Tensor)]
    steps = [group.get("steps", "") for group in optimizer.param_groups]
    return checksum(model.parameters()), checksum(tensors), *steps


def train(model, optimizer, steps, worker, first=0, then=lambda step: None):
    schedule = schedule_of(optimizer, steps)
    for _ in range(first):  # it is made anew, and does not know how far the job is
        schedule.step()
    for step in range(first, steps):
        optimizer.zero_grad()
        loss = loss_of(model, step, worker)
        loss.backward()
        optimizer.step()
        schedule.step()
        then(step + 1)


def alone(kind, steps, workers, change=lambda parameters: None, dtype=torch.float32):
    """Returns the model of one process that takes the batches of all workers."""
    model = model_of(dtype=dtype)
    optimizer = optimizer_of(kind, model)
    schedule = schedule_of(optimizer, steps)
    for step in range(steps):
        optimizer.zero_grad()
        for worker in range(workers):
            (loss_of(model, step, worker) / workers).backward()
        change(model.parameters())
        optimizer.step()
        schedule.step()
    return model


def differences(model, other):
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(model.parameters(), other.parameters()))


def trains_as_one_process(job, kind, steps, *options):
    model = model_of()
    optimizer = sluice.DistributedOptimizer(optimizer_of(kind, model), job, model, overlap="overlap" in options)
    train(model, optimizer, int(steps), optimizer.index)
    optimizer.leave()
    say("difference", differences(model, alone(kind, int(steps), optimizer.workers)), *state_of(model, optimizer))


def clips_the_mean(job, how):
    """In each way of PyTorch that a loop may have."""
    clips = {
        "norm": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.25),
        "value": lambda parameters: nn.utils.clip_grad_value_(parameters, 0.05),
    }
    model = model_of()
    optimizer = sluice.DistributedOptimizer(optimizer_of("nadam", model), job, model)
    schedule = schedule_of(optimizer, 30)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for step in range(30):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, step, optimizer.index)).backward()
        scaler.unscale_(optimizer)
        if how == "norm" and step % 2:
            optimizer.clip_grad_norm_(0.25)
        elif how == "value" and step % 2:
            optimizer.clip_grad_value_(0.05)
        else:
            optimizer.reduce()
            clips[how](model.parameters())
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    optimizer.leave()
    say("difference", differences(model, alone("nadam", 30, optimizer.workers, clips[how])))


def has_other_types(job, name):
    dtype = getattr(torch, name)
    model = model_of(dtype=dtype)
    optimizer = sluice.DistributedOptimizer(optimizer_of("radam", model), job, model)
    train(model, optimizer, 30, optimizer.index)
    optimizer.leave()
    assert all(parameter.dtype == dtype for parameter in model.parameters())
    say("difference", differences(model, alone("radam", 30, optimizer.workers, dtype=dtype)))


def goes_on_from_a_snapshot(job):
    """As a program does that saves with torch.save(), and loads before it goes on: AdamW, which the server has, too."""
    whole = model_of()
    before = optimizer_of("adamw", whole)
    train(whole, before, 30, 0)
    model = model_of()
    optimizer = optimizer_of("adamw", model)
    train(model, optimizer, 12, 0)
    saved = json.loads(json.dumps(optimizer.state_dict()["param_groups"])), optimizer.state_dict(), model.state_dict()
    again = model_of()
    again.load_state_dict(saved[2])
    inner = optimizer_of("adamw", again)
    inner.load_state_dict(saved[1])
    distributed = sluice.DistributedOptimizer(inner, job, again)
    moments = distributed.state_dict()["state"]
    for step in range(12, 20):
        distributed.zero_grad()
        optimizer.zero_grad()
        for trained, stepped in ((again, distributed), (model, optimizer)):
            loss_of(trained, step, 0).backward()
            stepped.step()
    distributed.load_state_dict(distributed.state_dict())
    distributed.leave()
    say("moments", len(moments), "difference", differences(again, model))


def leaves_a_step_out(job):
    """The sum of two finite gradients is infinite: no worker takes that step, and all take the others."""
    model = model_of()
    optimizer = sluice.DistributedOptimizer(optimizer_of("nadam", model), job, model)
    for step in range(6):
        optimizer.zero_grad()
        loss_of(model, step, optimizer.index).backward()
        if step == 3:
            model[3].bias.grad.fill_(3e38)
        optimizer.step()
    optimizer.leave()
    steps = {int(entry["step"]) for entry in optimizer.state_dict()["state"].values()}
    say("steps", *steps, "model", *state_of(model, optimizer))


def goes_to_the_end(job, kind, width, dies="lives"):
    """One that dies does so after 20 steps. A process that comes in its place takes the model from another worker."""
    model = model_of(int(width))
    optimizer = sluice.DistributedOptimizer(optimizer_of(kind, model), job, model)
    say("came at", optimizer.first_step)

    def then(step):
        say("step", step)
        if dies == "dies" and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)

    train(model, optimizer, 40, optimizer.index, optimizer.first_step, then)
    optimizer.await_end()
    say("end", *state_of(model, optimizer))
    optimizer.report()


def takes_local_steps(job):
    model = model_of()
    optimizer = sluice.DistributedOptimizer(optimizer_of("adadelta", model), job, model, local_steps=3)
    train(model, optimizer, 12, optimizer.index)
    optimizer.leave()
    say("local", checksum(model.parameters()))


class Breaks(torch.optim.SGD):
    """A step that breaks off when it has changed one parameter."""

    def step(self, closure=None):
        self.param_groups[0]["params"][0].data.add_(1)
        raise KeyboardInterrupt


def breaks_off(job):
    model = model_of()
    optimizer = sluice.DistributedOptimizer(Breaks(model.parameters(), lr=0.1), job, model)
    loss_of(model, 0, 0).backward()
    expect(KeyboardInterrupt, "", optimizer.step)
    before = checksum(model.parameters())
    for call in (optimizer.wait, optimizer.zero_grad, optimizer.step, optimizer.reduce, optimizer.leave):
        expect(sluice.ModelError, "a step of the optimizer has broken off", call)
    assert checksum(model.parameters()) == before
    say("broken")


def warns_of_a_state_that_cannot_be_handed_over(job):
    model = model_of()
    inner = optimizer_of("radam", model)
    optimizer = sluice.DistributedOptimizer(inner, job, model)
    inner.param_groups[0]["history"] = {1, 2}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, step, 0).backward()
            optimizer.step()
    said = [str(warning.message) for warning in told if "late: a set cannot be handed" in str(warning.message)]
    optimizer.leave()
    say("warned", len(said))


def is_refused(job):
    model = model_of()
    expect(sluice.ModelError, "LBFGS computes the gradient several times",
           lambda: sluice.DistributedOptimizer(torch.optim.LBFGS(model.parameters()), job, model))
    expect(sluice.ModelError, "SparseAdam takes sparse gradients only",
           lambda: sluice.DistributedOptimizer(torch.optim.SparseAdam(list(model.parameters())), job, model))
    expect(sluice.RemoteError, "the optimizer is one of a program, and the program of this server has none",
           lambda: sluice.DistributedOptimizer(optimizer_of("rprop", model), job, model, where="server"))
    expect(sluice.ModelError, "SGD has maximize=True",
           lambda: sluice.DistributedOptimizer(optimizer_of("maximize", model), job, model, where="server"))
    expect(ValueError, "where is 'here'",
           lambda: sluice.DistributedOptimizer(optimizer_of("adamw", model), job, model, where="here"))
    optimizer = sluice.DistributedOptimizer(optimizer_of("adamw", model), job, model)
    expect(sluice.ModelError, "where=\"worker\"", optimizer.reduce)
    expect(sluice.ModelError, "where=\"worker\"", lambda: optimizer.clip_grad_value_(1))
    optimizer.leave()
    say("refused")


def joins(job, where):
    model = model_of()
    try:
        optimizer = sluice.DistributedOptimizer(optimizer_of("adamw", model), job, model, where=where)
    except sluice.RemoteError as error:
        say("reason", error.reason, str(error))
        sys.exit(0)
    train(model, optimizer, 3, optimizer.index)
    optimizer.leave()


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](started, *sys.argv[2:])
