#!/usr/bin/python3
"""Modules on model servers: remote_modules.py SCENARIO [ARGUMENT…] [--sluice-…]. remote_modules_test.py starts it."""

import gc
import math
import sys
import threading
import time
import warnings
import weakref

import sluice
import torch
from saying import expect, say
from torch import nn

INPUTS, STEPS = 3, 20
_COPIES = []  # of Net's mark


class _Fragile(torch.autograd.Function):  # pylint: disable=abstract-method
    @staticmethod
    def forward(ctx, x, breaks):  # pylint: disable=arguments-differ
        ctx.breaks = breaks
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):  # pylint: disable=arguments-differ
        if ctx.breaks == 14:
            raise ValueError("fourteen")
        assert ctx.breaks != 15, "fifteen"
        return gradient, None


class _Mark:
    """Lives as long as its module."""

    def __deepcopy__(self, _memo):
        made = _Mark()
        _COPIES.append(weakref.ref(made))
        return made


class Net(nn.Module):
    """With batch statistics, and what trainers may call."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(INPUTS, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 2)
        self.mark = _Mark()

    def forward(self, x):
        if x.numel() and x[0, 0] == 13:
            raise KeyError("thirteen")
        return self.last(torch.tanh(self.norm(_Fragile.apply(self.first(x), float(x[0, 0]) if x.numel() else 0))))

    def evaluate(self, fails):
        self.eval()
        assert not fails, "sixteen"

    def alive(self):
        return sum(one() is not None for one in _COPIES)

    def same(self, values):
        return all(one is values[0] for one in values)

    def echo(self, value):
        return value

    def words(self, letters):
        return "x" * letters

    def unknown(self):
        return object()

    def scaled(self, x, scale, words):
        return {"x": x * scale, "training": self.training, "words": [*words, b"bytes"], "gradient": (self.first(x).requires_grad, None)}

    def both(self, x, y):
        return y, x

    def nothing(self):
        pass


class Tutorial(nn.Module):
    """The network of module_server_main.cc, with the names of its parameters."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Module(), nn.Module()
        self.body.conv1, self.body.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.head.fc1, self.head.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = torch.relu(self.body.conv2(torch.relu(self.body.conv1(x))))
        x = torch.flatten(nn.functional.max_pool2d(x, 2), 1)
        return self.head.fc2(torch.relu(self.head.fc1(x)))


def make_net():
    torch.manual_seed(1)
    return Net()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batch_of(index, step):
    return torch.randn(6, INPUTS, generator=torch.Generator().manual_seed(100 * index + step))


def loss_of(output):
    return output.square().mean()


METHODS = ["scaled", "both", "nothing", "evaluate", "alive", "same", "echo", "words", "unknown"]


# ---- Those who serve ----

def serves(job, at, kind="net", trainers="0"):
    torch.manual_seed(1)
    model = {"net": make_net, "first": lambda: nn.Sequential(nn.Linear(INPUTS, 4), nn.Tanh()), "second": lambda: nn.Linear(4, 2),
             "tutorial": Tutorial}[kind]()
    gc.disable()  # what trainers have used is freed without it
    before = [parameter.clone() for parameter in model.parameters()]
    code = sluice.serve_module(job, model, make_optimizer(model), at=at, methods=METHODS if kind == "net" else [],
                               trainers=int(trainers))
    assert all(torch.equal(one, parameter) for one, parameter in zip(before, model.parameters()))
    say("served", code)
    return code


# ---- Those who train ----

def compute_themselves(job, *_words):
    """What trains_as_workers_do ends with."""
    model = make_net()
    optimizer = sluice.DistributedOptimizer(make_optimizer(model), job, model)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(batch_of(optimizer.index, step)))
        loss.backward()
        optimizer.step(samples=6, loss=loss)


def train_as_workers_do(job, at):
    model = sluice.RemoteModule(job, at)
    for step in range(STEPS):
        loss = loss_of(model(batch_of(model.index, step)))
        loss.backward()
        assert model.step(samples=6, loss=loss).step == step + 1
    model.await_end()
    model.eval()
    with torch.no_grad():
        say("final", *model(batch_of(0, 0))[0].tolist())


def train_halves(job, first, second):
    """A model in two parts, with a module of this process before them, against PyTorch alone."""
    torch.manual_seed(2)
    own = nn.Linear(INPUTS, INPUTS)
    torch.manual_seed(1)
    halves = [nn.Sequential(nn.Linear(INPUTS, 4), nn.Tanh())]
    torch.manual_seed(1)
    halves.append(nn.Linear(4, 2))
    alone = nn.Sequential(nn.Linear(INPUTS, INPUTS), *halves)
    alone[0].load_state_dict(own.state_dict())
    parts = [sluice.RemoteModule(job, first), sluice.RemoteModule(job, second)]
    model = nn.Sequential(own, *parts)
    optimizers = [torch.optim.SGD(own.parameters(), lr=0.1), torch.optim.SGD(alone[0].parameters(), lr=0.1),
                  torch.optim.SGD([*halves[0].parameters(), *halves[1].parameters()], lr=0.1, momentum=0.9)]
    for step in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss, truth = loss_of(model(batch_of(0, step))), loss_of(alone(batch_of(0, step)))
        assert abs(loss.item() - truth.item()) < 1e-6, (step, loss, truth)
        loss.backward()
        truth.backward()
        rounds = sluice.RemoteModule.step_all(parts, samples=6, loss=loss)
        assert [one.step for one in rounds] == [step + 1, step + 1]
        for optimizer in optimizers:
            optimizer.step()
    say("halves", float((own.weight - alone[0].weight).abs().max()) < 1e-6)
    for part in parts:
        part.leave()


def use_it(job, at):
    model = sluice.RemoteModule(job, at)
    x = batch_of(0, 0)
    wanting = x.clone().requires_grad_(True)
    truth = make_net()
    loss_of(truth(wanting)).backward()
    expected, wanting.grad = wanting.grad, None
    loss_of(model(wanting)).backward()
    assert torch.allclose(wanting.grad, expected, atol=1e-7), (wanting.grad, expected)
    gradients = model.gradients()
    assert list(gradients) == [name for name, _ in truth.named_parameters()]
    for name, parameter in truth.named_parameters():
        assert torch.allclose(gradients[name], parameter.grad, atol=1e-7), name
    assert list(model.gradients("last.bias", "first.weight")) == ["last.bias", "first.weight"]
    model.zero_grad()
    assert not any(gradient.any() for gradient in model.gradients().values())
    returned = model.call("scaled", x, 2.0, ("a", "b"))
    assert torch.equal(returned.pop("x"), 2 * x)
    assert returned == {"training": True, "words": ["a", "b", b"bytes"], "gradient": (False, None)}, returned
    assert model.eval().call("scaled", x, 1, [])["training"] is False
    y, same = model.call("both", x, torch.tensor([True, False]))
    assert torch.equal(same, x) and y.tolist() == [True, False]
    assert model.call("nothing") is None
    assert model.call("echo", [math.inf, -math.inf]) == [math.inf, -math.inf] and math.isnan(model.call("echo", math.nan))
    assert model.call("same", [b"bytes" * 100_000] * 5000)  # they are sent once, and made once
    assert model.call("echo", [b"one", b"two", b"", "text", b"one"]) == [b"one", b"two", b"", "text", b"one"]
    for fails in (False, True):
        model.train()
        model.call("scaled", x, 1, [])
        try:
            model.call("evaluate", fails)
        except sluice.RemoteError:
            assert fails
        assert model.call("scaled", x, 1, [])["training"] is True
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool):
        sent = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype).t()
        assert torch.equal(model.call("both", sent, sent)[0], sent), dtype
    assert model.call("both", torch.zeros(0, 3), torch.tensor(5))[1].shape == (0, 3)
    assert not list(model.parameters()) and model.last is None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not nn.Sequential(model).state_dict()
    assert [str(one.message)[:55] for one in told] == ["state_dict() has nothing of the RemoteModule '0': its p"], told
    model.leave()
    say("used")


def make_mistakes(job, at):
    model = sluice.RemoteModule(job, at)
    x = batch_of(0, 0)
    refused = expect(sluice.RemoteError, "the module refuses these tensors: RuntimeError: mat1 and mat2", lambda: model(torch.zeros(2, 5)))
    assert (refused.reason, refused.code) == ("BAD_ARGUMENT", "INVALID_ARGUMENT"), refused.reason
    expect(sluice.RemoteError, "the module refuses these tensors: TypeError", lambda: model(x, x))
    expect(sluice.RemoteError, "the model server has failed: KeyError: 'thirteen'", lambda: model(torch.full((2, 3), 13.0)))
    expect(ValueError, "a remote module takes dense tensors of real numbers, integers and bool; found one of torch.complex64",
           lambda: model(x.to(torch.complex64)))
    expect(ValueError, "found str", lambda: model("text"))
    expect(TypeError, "a object cannot be handed to another worker", lambda: model.call("both", object(), x))
    for name in ("parameters", "__init__", "forward", "first"):
        expect(sluice.RemoteError, f"the model server offers no method {name!r}; it offers scaled, both, nothing, evaluate", lambda: model.call(name))
    expect(sluice.RemoteError, "the module trains no parameter 'norm.running_mean'", lambda: model.gradients("norm.running_mean"))
    expect(sluice.RemoteError, "the tensors of one call have", lambda: model(torch.zeros(6_000_000, 3)))
    expect(sluice.RemoteError, "expected at most 67174400 with all tensors, texts and names", lambda: model.call("echo", "x" * 70_000_000))
    expect(sluice.RemoteError, "expected at most 67174400 with all tensors, texts and names", lambda: model.call("words", 70_000_000))
    expect(sluice.RemoteError, "the method 'unknown' has returned what cannot be sent: a object cannot", lambda: model.call("unknown"))
    expect(sluice.RemoteError, 'the gradient of "last.bias" was asked for twice at once', lambda: model.gradients(*["last.bias"] * 2))
    output = loss_of(model(x))
    expect(RuntimeError, "it has no gradients of second order", lambda: output.backward(create_graph=True))
    model.zero_grad()
    output = loss_of(model(x))
    output.backward(retain_graph=True)
    expect(sluice.RemoteError, "each has one backward, before step() and zero_grad()", output.backward)
    expect(sluice.RemoteError, "each has one backward, before step() and zero_grad()", model.step)  # and pushes nothing
    model(torch.full((2, 3), 14.0)).sum().backward()  # nobody waits for its answer
    expect(sluice.RemoteError, "the module refuses these tensors: ValueError: fourteen", model.step)  # and pushes nothing
    loss_of(model(x)).backward()
    model(torch.full((2, 3), 15.0)).sum().backward()
    expect(sluice.RemoteError, "the model server has failed: AssertionError: fifteen", model.step)  # and pushes nothing
    for _ in range(9):
        expect(sluice.RemoteError, "the module refuses these tensors: TypeError", lambda: model.call("both", x))
    loss_of(model(x)).backward()
    assert model.step().step == 1
    expect(ValueError, "samples is 0", lambda: model.step(samples=0))
    expect(TypeError, "cannot be pickled or saved", lambda: torch.save(model, "/dev/null"))
    kept = [model(x) for _ in range(64)]
    expect(sluice.RemoteError, "this trainer has 64 outputs without backward", lambda: model(x))
    with torch.no_grad():
        model(x)
    loss_of(kept[0]).backward()
    assert model.step().step == 2
    model.leave()
    expect(sluice.RemoteError, "after leave()", model.step)
    say("mistaken")


def find_nobody(job, at):
    error = expect(sluice.ServerGoneError, f"no model server at {at} within ", lambda: sluice.RemoteModule(job, at))
    assert error.code == "UNAVAILABLE"
    say("nobody")


def know_no_token(job, at):
    error = expect(sluice.RemoteError, "token", lambda: sluice.RemoteModule(job, at))
    assert error.reason == "BAD_TOKEN", error.reason
    say("no token")


def outlive_it(job, at):
    """The model server ends while this trainer is there."""
    model = sluice.RemoteModule(job, at)
    loss_of(model(batch_of(0, 0))).backward()
    model.step()
    say("stepped")
    sys.stdin.readline()
    error = expect(sluice.ServerGoneError, f"the model server at {at} is gone: ", lambda: model(batch_of(0, 0)))
    expect(sluice.ServerGoneError, "is gone: ", model.step)
    assert error.code == "UNAVAILABLE"
    say("outlived")


def wait_in_a_step(job, at):
    """Until the other trainer comes. Meanwhile another thread runs: the interpreter's lock is free."""
    model = sluice.RemoteModule(job, at)
    counted, ends = [0], threading.Event()

    def count():
        while not ends.wait(0.001):
            counted[0] += 1
            if counted[0] == 300:
                say("counted")

    threading.Thread(target=count, daemon=True).start()
    loss_of(model(batch_of(0, 0))).backward()
    say("waits")
    try:
        model.step()
    except KeyboardInterrupt:
        say("interrupted")
        raise
    except sluice.ServerGoneError:
        say("gone")
        return
    ends.set()
    say("went on", counted[0] >= 300)
    model.leave()


def come_and_go(job, at):
    """What a trainer used is freed when it is gone."""
    models = []
    for step in range(3):
        models.append(sluice.RemoteModule(job, at))  # which takes the place of the one before
        loss_of(models[-1](batch_of(0, step))).backward()
        assert models[-1].step().step == step + 1
        assert models[-1].call("alive") == 1
    say("came and went")


def end_with(job, at, code, how):
    model = sluice.RemoteModule(job, at)
    loss_of(model(batch_of(0, 0))).backward()
    model.step()
    say("ends")
    if how == "global":
        globals()["kept"] = model
    sys.exit(int(code))


def fail(job, at):
    """A trainer that an exception ends."""
    model = sluice.RemoteModule(job, at)
    loss_of(model(batch_of(0, 0))).backward()
    model.step()
    raise LookupError("no more data")


def come_again(job, at):
    model = sluice.RemoteModule(job, at)
    assert (model.index, model.workers, model.batches_before) == (0, 1, 1)
    loss_of(model(batch_of(0, 0))).backward()
    assert model.step().step == 2
    say("came again")  # and ends without leave()


def train_on_images(job, at):
    """With the module_server in C++."""
    model = sluice.RemoteModule(job, at)
    x = torch.randn(4, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    for step in range(3):
        loss = nn.functional.cross_entropy(model(x), torch.arange(4))
        loss.backward()
        assert model.gradients("head.fc2.bias")["head.fc2.bias"].shape == (10,)
        assert model.step(samples=4, loss=loss).step == step + 1
    expect(sluice.RemoteError, 'the model server offers no method "forward"', lambda: model.call("forward", x))
    model.leave()
    say("trained on images")


def serves_and_is_told(job, at):
    model = make_net()
    expect(ValueError, "Net has no method 'train_all', which `methods` names",
           lambda: sluice.serve_module(job, model, make_optimizer(model), at=at, methods=["train_all"]))
    expect(ValueError, "methods is 'both', expected names", lambda: sluice.serve_module(job, model, make_optimizer(model), at=at, methods="both"))
    for name in ("max_trainers", "trainers"):
        for count in (-1, 2**32, 1.5):
            expect(ValueError, f"{name} is {count}, expected a whole number from ",
                   lambda: sluice.serve_module(job, model, make_optimizer(model), at=at, **{name: count}))  # pylint: disable=cell-var-from-loop
    expect(sluice.ModelError, "LBFGS computes the gradient several times in a step",
           lambda: sluice.serve_module(job, model, torch.optim.LBFGS(model.parameters()), at=at))
    expect(sluice.ModelError, "is none of `model`'s", lambda: sluice.serve_module(job, model, make_optimizer(make_net()), at=at))
    model.lock = threading.Lock()
    expect(sluice.ModelError, "each trainer needs a copy of the model and the optimizer, and copy.deepcopy() fails: cannot pickle",
           lambda: sluice.serve_module(job, model, make_optimizer(model), at=at))
    del model.lock
    for address, kind, why in ((at + "/no/folder", sluice.ServerGoneError, "the model server cannot listen on unix:"),
                               ("192.0.2.1:1", sluice.RemoteError, "in plaintext at 192.0.2.1:1 the network could read and change"),
                               ("nowhere", sluice.RemoteError, "nowhere")):
        expect(kind, why, lambda: sluice.serve_module(job, model, make_optimizer(model), at=address))  # pylint: disable=cell-var-from-loop
    check = sluice._library.check

    def interrupt(code):
        check(code)
        raise KeyboardInterrupt

    sluice._library.check = interrupt
    for _ in range(2):  # the first one no longer listens when the second begins
        expect(KeyboardInterrupt, "", lambda: sluice.serve_module(job, model, make_optimizer(model), at=at))
    say("told")


def main():
    torch.set_num_threads(1)
    job = sluice.start()
    name, *words = sys.argv[1:]
    if job.is_server and name == "compute_themselves":
        return job.serve()
    scenario = serves if job.is_server else globals()[name]
    begun = time.monotonic()
    code = scenario(job, *words)
    say(f"{name} took {time.monotonic() - begun:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
