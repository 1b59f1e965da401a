#!/usr/bin/python3
"""Jobs whose server steps with an optimizer of this program: server_optimizer.py SCENARIO [ARGUMENT…] [--sluice-…].

server_optimizer_test.py starts it.
"""

import os
import signal
import sys

import sluice
import torch
from changing_layouts import Network, checksum, push
from saying import expect, say


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms": one tensor of state."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros_like(parameter)
                mean, (beta1, beta2) = state["exp_avg"], group["betas"]
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(torch.sign(mean * beta1 + parameter.grad * (1 - beta1)), alpha=-group["lr"])
                state["exp_avg"] = mean * beta2 + parameter.grad * (1 - beta2)  # another tensor in each step


class Factored(torch.optim.Optimizer):
    """Shazeer, Stern 2018, "Adafactor", without its details: rows and columns of squares, and a Python number."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr, "eps": 1e-30, "total": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["total"] = group["total"] * 1.7 + 1e-17  # a number of the group that steps change
            for parameter in group["params"]:
                state = self.state[parameter]
                squares = parameter.grad.reshape(len(parameter), -1).square() + group["eps"]
                if not state:
                    state.update(step=0, rows=torch.zeros(len(squares)), columns=torch.zeros(squares.shape[1], dtype=torch.float64))
                state["step"] += 1
                keep = 1 - state["step"] ** -0.8
                state["rows"].mul_(keep).add_(squares.mean(1), alpha=1 - keep)
                state["columns"].mul_(keep).add_(squares.mean(0), alpha=1 - keep)
                scale = torch.outer(state["rows"], state["columns"].float()) / state["rows"].mean()
                parameter.sub_((parameter.grad.reshape(len(parameter), -1) / scale.sqrt()).view_as(parameter), alpha=group["lr"])


class Muon(torch.optim.Optimizer):
    """Jordan et al. 2024, "Muon": an update of a matrix is made orthogonal, so no element is stepped for itself."""

    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                update = state["momentum_buffer"].mul_(group["momentum"]).add_(parameter.grad)
                if parameter.dim() == 2:
                    update = update / (update.norm() + 1e-7)
                    for _ in range(5):
                        square = update @ update.T
                        update = 3.4445 * update + (-4.7750 * square + 2.0315 * square @ square) @ update
                parameter.sub_(update, alpha=group["lr"])


class Failing(torch.optim.SGD):
    """It fails in its fourth step."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["steps"] = group.get("steps", 0) + 1
            if group["steps"] == 4:
                raise ZeroDivisionError("the fourth step: \ud800 " + 2000 * "ä")
        super().step()


class Dying(Factored):
    """In the process that serves, it dies in step 60, and once only."""

    marker = ""  # the file that says that it has died

    def step(self, closure=None):
        if self.marker and self.state and self.state[self.param_groups[0]["params"][0]]["step"] == 60 and not os.path.exists(self.marker):
            with open(self.marker, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        super().step()


class Odd(torch.optim.Optimizer):
    """It remembers numbers that change their kind, and that float32 does not have."""

    def __init__(self, params, lr=0.01):
        super().__init__(params, {"lr": lr, "best": 0, "wide": 2**62 + 1, "flag": False, "none": None})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["best"] = max(group["best"], float(sum(one.grad.abs().sum() for one in group["params"])))
            group["wide"] -= 3
            group["flag"] = not group["flag"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state.update(half=torch.zeros(parameter.shape, dtype=torch.float16), most=float("-inf"), zero=-0.0, none=None,
                                 count=torch.full((2,), -2**60 - 1))
                state["half"] += parameter.grad.half()
                state["most"] = max(state["most"], float(parameter.grad.max()))
                state["count"] -= 1
                scale = 1 + 0.01 * group["best"] + (group["wide"] % 7) * 0.01 + group["flag"] + float(state["count"][0] % 5) + state["most"]
                parameter.sub_(parameter.grad + state["half"].float() * 0.01, alpha=group["lr"] * scale)


class Counting(torch.optim.SGD):
    """It counts where no state_dict() sees it."""

    count = 0

    def step(self, closure=None):
        self.count += 1
        super().step()


class Apart(torch.optim.SGD):
    """A part of its state belongs to no parameter."""

    def step(self, closure=None):
        self.state["k"] = {"k": 1}
        super().step()


KINDS = {
    "lion": lambda parameters: Lion(parameters, lr=0.003, weight_decay=0.1),
    "factored": lambda parameters: Factored(parameters, lr=0.01),
    "muon": lambda parameters: Muon(parameters, lr=0.01),
    "radam": lambda parameters: torch.optim.RAdam(parameters, lr=0.01),
    "nadam": lambda parameters: torch.optim.NAdam(parameters, lr=0.01),
    "adadelta": lambda parameters: torch.optim.Adadelta(parameters, lr=0.5),
    "rprop": lambda parameters: torch.optim.Rprop(parameters, lr=0.01),
    "dying": lambda parameters: Dying(parameters, lr=0.01),
    "odd": lambda parameters: Odd(parameters),  # pylint: disable=unnecessary-lambda
    "counting": lambda parameters: Counting(parameters, lr=0.01),
    "apart": lambda parameters: Apart(parameters, lr=0.01),
    "failing": lambda parameters: Failing(parameters, lr=0.01),
}


def groups_of(named):
    """Two groups with rates of their own; by name, as the server knows the parameters."""
    return [{"params": [one for name, one in named if not name.endswith("bias")]},
            {"params": [one for name, one in named if name.endswith("bias")], "lr": 0.002}]


def make_lion(named):
    """For a server by hand."""
    return KINDS["lion"](groups_of(named))


def schedule_of(optimizer):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.02, 0.01], total_steps=220, cycle_momentum=False)


def differences(state, own):
    """Which values of the state differ; the schedule's notes in the groups are the worker's."""
    differ = set()
    for index, values in own["state"].items():
        for key, value in values.items():
            seen = state["state"][index][key]
            same = torch.equal(seen, value) and seen.dtype == value.dtype if isinstance(value, torch.Tensor) else seen == value
            differ |= set() if same and type(seen) is type(value) else {key}
    for group, of_own in zip(state["param_groups"], own["param_groups"]):
        differ |= {key for key in group if group[key] != of_own[key]}
    return sorted(differ) or "equal"


def equals_one_process(job, kind, steps="200"):
    """One worker: the same gradients, steps and rates as in one process, and the same bits."""
    model = Network()
    optimizer = sluice.DistributedOptimizer(KINDS[kind](groups_of(list(model.named_parameters()))), job, model)
    schedule = schedule_of(optimizer)
    alone = Network()
    inner = KINDS[kind](groups_of(list(alone.named_parameters())))
    own = schedule_of(inner)
    for _ in range(optimizer.first_step):
        schedule.step()
    for step in range(int(steps)):
        if step >= optimizer.first_step:
            push(model, optimizer, step)
            schedule.step()
        push(alone, inner, step)
        own.step()
    largest = max(float((a - b).abs().max()) for a, b in zip(model.parameters(), alone.parameters()))
    say("difference", largest, "state", differences(optimizer.state_dict(), inner.state_dict()), "model", checksum(model.parameters()))


def trains_together(job, kind):
    """Several workers, in any mode."""
    model = Network()
    optimizer = sluice.DistributedOptimizer(KINDS[kind](model.parameters()), job, model)
    for step in range(20):
        push(model, optimizer, step)
    optimizer.leave()
    say("rank", job.rank, "trained")


def is_refused(job, kind):
    """The worker's optimizer is not the server's, or the server has none."""
    model = Network()
    made = KINDS[kind](model.parameters())

    def train():
        optimizer = sluice.DistributedOptimizer(made, job, model, where="server")
        for step in range(5):
            push(model, optimizer, step)

    try:
        train()
    except (sluice.RemoteError, sluice.ModelError) as error:
        say("refused:", error)


def is_loaded(job, kind):
    """A state that was loaded before is not the server's."""
    model = Network()
    optimizer = KINDS[kind](model.parameters())
    push(model, optimizer, 0)
    expect(sluice.ModelError, "has taken steps or was loaded", lambda: sluice.DistributedOptimizer(optimizer, job, model, where="server"))
    say("refused")
    sluice.DistributedOptimizer(KINDS[kind](model.parameters()), job, model).leave()


def changes_another_option(job, kind):
    model = Network()
    optimizer = sluice.DistributedOptimizer(KINDS[kind](model.parameters()), job, model)
    push(model, optimizer, 0)
    optimizer.param_groups[0]["weight_decay"] = 0.5
    expect(sluice.ModelError, "an option other than lr", lambda: push(model, optimizer, 1))
    say("refused")


def main(scenario, *words):
    kind = os.environ.get("SERVER_OPTIMIZER", words[0])  # the server's, if it is another one

    def make(named):
        made = KINDS[kind](groups_of(named) if scenario == "equals_one_process" else [one for _, one in named])
        made.marker = os.environ.get("DIES_ONCE", "")
        return made

    job = sluice.start(server_optimizer=None if kind == "none" else make)
    if job.is_server:
        sys.exit(job.serve())
    globals()[scenario](job, *words)


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if not word.startswith("--")])
