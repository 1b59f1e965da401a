#!/usr/bin/python3
"""What is trained changes: changing_layouts.py SCENARIO [ARGUMENT…] [--sluice-…]. changing_layouts_test.py starts it."""

import copy
import importlib
import os
import pickle
import signal
import sys
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
from torch.optim import lr_scheduler  # noqa: E402

STEPS = 30


class Network(nn.Module):
    """A body with batch normalization and a buffer that each batch changes, a head, and a part that is added later."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(4)
        self.body = nn.Sequential(nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7), nn.Tanh())
        self.extra = nn.Linear(7, 7)
        self.head = nn.Linear(7, 2)
        self.register_buffer("seen", torch.zeros(5))
        self.to(dtype)

    def forward(self, inputs):
        if self.training:
            self.seen.mul_(0.9).add_(inputs.detach().mean(0), alpha=0.1)
        hidden = self.body(inputs)
        return self.head(hidden + self.extra(hidden).tanh())


def loss_of(model, step, worker):
    inputs = torch.randn(6, 5, generator=torch.Generator().manual_seed(1000 * step + worker))
    inputs = inputs.to(next(model.parameters()).dtype)
    return ((model(inputs) - inputs[:, :2] * 2 + 1)**2).mean()


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    "radam": lambda parameters: torch.optim.RAdam(parameters, lr=0.01),
}
SCHEDULES = {
    "one-cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=STEPS, cycle_momentum=False),
    "step": lambda optimizer: lr_scheduler.StepLR(optimizer, 4, gamma=0.8),
}


def freeze(part, frozen=True):
    for parameter in part.parameters():
        parameter.requires_grad_(not frozen)


def head_first(model, optimizer, step):
    """The head alone, then the body, then the extra part with a rate of its own, then no body any more."""
    if step == 8:
        freeze(model.body, False)
    if step == 16:
        freeze(model.extra, False)
        optimizer.add_param_group({"params": model.extra.parameters(), "lr": 0.002})
    if step == 24:
        freeze(model.body)


def thaws(model, _optimizer, step):
    if step in (8, 20):
        freeze(model.body, step == 20)


STAGES = {"head-first": head_first, "thaws": thaws}


def begin(kind, dtype=torch.float32):
    """Returns a model of which the head is trained, and PyTorch's optimizer of the head and the frozen body."""
    model = Network(dtype)
    freeze(model.body)
    freeze(model.extra)
    return model, OPTIMIZERS[kind]([*model.body.parameters(), *model.head.parameters()])


def train(model, optimizer, workers, stages, schedule, clip=None, steps=range(STEPS)):
    """Takes steps with the batches of those workers."""
    scheduled = SCHEDULES[schedule](optimizer)
    for step in steps:
        STAGES[stages](model, optimizer, step)
        optimizer.zero_grad(set_to_none=True)
        for worker in workers:
            (loss_of(model, step, worker) / len(workers)).backward()
        if clip is not None:
            clip(optimizer, model)
        optimizer.step()
        scheduled.step()
    return scheduled


def clip_alone(_optimizer, model):
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 0.4)


def clip_remote(optimizer, _model):
    optimizer.clip_grad_norm_(0.4)


def difference(model, other):
    return max((a.double() - b.double()).abs().max().item() for a, b in zip(model.parameters(), other.parameters()))


def checksum(tensors):
    return format(zlib.crc32(b"".join(tensor.detach().double().numpy().tobytes() for tensor in tensors)), "08x")


def trains_in_stages(job, kind, stages, schedule, where, *options):
    dtype = torch.float64 if "float64" in options else torch.float32
    model, inner = begin(kind, dtype)
    optimizer = sluice.DistributedOptimizer(inner, job, model, where=where, overlap="overlap" in options)
    clips = "clip" in options
    scheduled = train(model, optimizer, [optimizer.index], stages, schedule, clip_remote if clips else None)
    other, alone = begin(kind, dtype)
    train(other, alone, range(job.size), stages, schedule, clip_alone if clips else None)
    assert optimizer.last.step == STEPS, optimizer.last
    assert pickle.loads(pickle.dumps(scheduled.state_dict()))["last_epoch"] == STEPS
    saved = copy.deepcopy(optimizer.state_dict())
    assert saved["state"].keys() == alone.state_dict()["state"].keys()
    optimizer.await_end()
    say("difference", difference(model, other), "model", checksum(model.state_dict().values()))


def goes_on_from_a_snapshot(job, kind, order, *options):
    """As a program of DistributedDataParallel does, which loads after it has wrapped."""
    whole, alone = begin(kind)
    train(whole, alone, range(job.size), "thaws", "step", steps=range(15))
    snapshot = copy.deepcopy([whole.state_dict(), alone.state_dict()])
    model, inner = begin(kind)
    optimizer = sluice.DistributedOptimizer(inner, job, model)
    if "later" in options:
        train(model, optimizer, [job.rank], "thaws", "step", steps=range(5))
    loads = [lambda: model.load_state_dict(snapshot[0]), lambda: optimizer.load_state_dict(snapshot[1])]
    for load in loads if order == "model-first" else reversed(loads):
        load()
    assert optimizer.state_dict()["state"].keys() == snapshot[1]["state"].keys()
    freeze(model.body, False)
    for one, stepped, workers in ((whole, alone, range(job.size)), (model, optimizer, [job.rank])):
        for step in range(15, 25):
            stepped.zero_grad(set_to_none=True)
            for worker in workers:
                (loss_of(one, step, worker) / len(workers)).backward()
            stepped.step()
    optimizer.leave()
    say("difference", difference(model, whole), "model", checksum(model.state_dict().values()))


def continue_without_changes(model, optimizer):
    """A program that has not made the changes of the others when it was started again."""
    loss_of(model, 0, 0).backward()
    say("told", expect(sluice.ModelError, "and go on from step 6. This process was started again", optimizer.step))
    expect(sluice.RemoteError, "have changed what they train (layout-2.at-6)", optimizer.await_end)
    os._exit(4)  # pylint: disable=protected-access


def deals_batches(job, where, dies, kind="adamw"):
    """Epochs with a sampler, a stage each. One worker dies in the second layout, and is started again."""
    model, inner = begin(kind)
    optimizer = sluice.DistributedOptimizer(inner, job, model, where=where)
    came_again = optimizer.first_step > 0
    sampler = sluice.DistributedSampler(60, 5, optimizer)
    scheduled = lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
    taken = []
    for epoch in range(4):
        if came_again and epoch == 0:
            with optimizer.away():  # it does not take part yet
                pass
        if came_again and kind == "sgd":
            continue_without_changes(model, optimizer)
        if epoch == 1:
            freeze(model.body, False)
        if epoch == 2:
            freeze(model.extra, False)
            optimizer.add_param_group({"params": model.extra.parameters(), "lr": 0.004})
        for rows in torch.utils.data.DataLoader(range(60), batch_sampler=sampler):
            taken += rows.tolist()
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, int(rows.sum()), int(rows[0])).backward()
            if dies == f"{epoch}.{len(taken)}" and job.rank == 1 and not came_again:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
        scheduled.step()
    optimizer.await_end()
    state = [value for entry in optimizer.state_dict()["state"].values() for value in entry.values()]
    say("rank", job.rank, "rows", len(taken), "step", optimizer.last.step, "model", checksum([*model.parameters(), *state]),
        "statistics", checksum(model.buffers()))


def trains_two_of_which_one_changes(job):
    first, second = begin("sgd"), begin("adamw")
    with job.run("fold"):
        optimizers = [sluice.DistributedOptimizer(first[1], job, first[0]),
                      sluice.DistributedOptimizer(second[1], job, second[0], name="critic")]
        train(first[0], optimizers[0], [job.rank], "head-first", "step")
        train(second[0], optimizers[1], [job.rank], "thaws", "one-cycle")
    others = begin("sgd"), begin("adamw")
    train(*others[0], range(job.size), "head-first", "step")
    train(*others[1], range(job.size), "thaws", "one-cycle")
    say("difference", difference(first[0], others[0][0]), difference(second[0], others[1][0]))


def push(model, optimizer, step=0):
    optimizer.zero_grad(set_to_none=True)
    loss_of(model, step, 0).backward()
    optimizer.step()


def replaces_its_head(job):
    """New parameters in the place of old ones, which the optimizer still has."""
    models = []
    for distributes in (True, False):
        model, optimizer = begin("sgd")
        if distributes:
            optimizer = distributed = sluice.DistributedOptimizer(optimizer, job, model)
        for step in range(10):
            if step == 4:
                torch.manual_seed(9)
                model.head = nn.Linear(7, 2)
                optimizer.add_param_group({"params": model.head.parameters()})
            if step == 7:
                freeze(model.body)
            push(model, optimizer, step)
        models.append(model)
    distributed.leave()
    say("difference", difference(*models))


def is_refused(job):
    """Where what is trained cannot change, and where nothing would be left."""
    model, inner = begin("adamw")
    extra = {"params": model.extra.parameters()}
    optimizer = sluice.DistributedOptimizer(inner, job, model, where="server")
    push(model, optimizer)
    expect(sluice.ModelError, "leave where=\"server\" out, or add and unfreeze", lambda: optimizer.add_param_group(extra))
    expect(sluice.ModelError, "leave where out, and the workers step", lambda: optimizer.load_state_dict(inner.state_dict()))
    freeze(model.body, False)
    expect(sluice.ModelError, "made (parameters were unfrozen), and the server, which steps", optimizer.step)
    freeze(model.body)
    push(model, optimizer)
    optimizer.leave()
    model, inner = begin("sgd")
    optimizer = sluice.DistributedOptimizer(inner, job, model, name="averaged", local_steps=2)
    expect(sluice.ModelError, "with local_steps the server would not average", lambda: optimizer.add_param_group(extra))
    optimizer.leave()
    model, inner = begin("sgd")
    optimizer = sluice.DistributedOptimizer(inner, job, model, name="empty", overlap=True)
    push(model, optimizer)
    loss_of(model, 1, 0).backward()
    freeze(model.head)
    expect(sluice.ModelError, "no parameter of the optimizer requires a gradient", optimizer.step)
    freeze(model.head, False)
    push(model, optimizer, 2)
    alone, stepped = begin("sgd")
    for step in (0, 2):
        push(alone, stepped, step)
    say("difference", difference(model, alone))
    freeze(model.body, False)
    push(model, optimizer, 3)
    optimizer.leave()
    expect(sluice.ModelError, "has changed what it trains (empty.layout-2.at-2)",
           lambda: sluice.DistributedOptimizer(begin("sgd")[1], job, model, name="empty"))
    say("refused")


def cannot_change(job):
    """Its mode, or the number of servers, excludes it."""
    model, inner = begin("adamw")
    optimizer = sluice.DistributedOptimizer(inner, job, model)
    if job.size > 1:
        job.barrier()  # nobody comes when another has tried to change
    push(model, optimizer)
    before = checksum(model.parameters())
    freeze(model.body, False)
    error = expect(sluice.ModelError, "the job cannot go on with them: ", lambda: push(model, optimizer))
    assert checksum(model.parameters()) == before
    freeze(model.body)
    push(model, optimizer)
    say("told", error)
    optimizer.leave()


def changes(job, what, *options):
    """Adds a parameter of that many elements, or nothing."""
    importlib.import_module("sluice.optimizer")._PATIENCE = 0.5  # pylint: disable=protected-access
    model, inner = begin("sgd")
    optimizer = sluice.DistributedOptimizer(inner, job)
    push(model, optimizer)
    if "waits" in options:
        sys.stdin.readline()
    if what != "nothing":
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(int(what)))]})
    say("changes", what)
    try:
        push(model, optimizer)
    except sluice.ModelError as error:
        say("told", error)
    say("went on")


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](started, *sys.argv[2:])
