#!/usr/bin/python3
"""Workers that train several models: named_models.py SCENARIO [ARGUMENT…] [--sluice-…]. named_models_test.py starts them."""

import copy
import sys

import sluice

if __name__ == "__main__":  # before torch, which a process that serves does not need
    started = sluice.start()
    if started.is_server:
        sys.exit(started.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from saying import expect, say  # noqa: E402
from torch import nn  # noqa: E402

STEPS = 30


def linear(seed):
    torch.manual_seed(seed)
    return nn.Linear(4, 1)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def inputs_of(step, workers, width=4):
    """Of a batch of 5 rows for each worker, which depends on the numbers only."""
    return torch.cat([torch.randn(5, width, generator=torch.Generator().manual_seed(1000 * step + worker))
                      for worker in workers])


def train(model, optimizer, target, workers, shift=0):
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = ((model(inputs_of(step + shift, workers)) - target)**2).mean()
        loss.backward()
        optimizer.step()


def alone(seed, target, workers, shift=0):
    """Returns the model of one process that takes the batches of all workers."""
    model = linear(seed)
    train(model, sgd(model), target, range(workers), shift)
    return model


def difference(model, other):
    return max((a - b).abs().max().item() for a, b in zip(model.parameters(), other.parameters()))


def trains_two_models_that_know_nothing_of_each_other(job):
    models = {"plus": linear(1), "minus": linear(2)}
    optimizers = {name: sluice.DistributedOptimizer(sgd(model), job, model, name=name) for name, model in models.items()}
    worker = [optimizers["plus"].index]
    for step in range(STEPS):
        for name, target in (("plus", 1.0), ("minus", -1.0)):
            optimizers[name].zero_grad()
            ((models[name](inputs_of(step, worker)) - target)**2).mean().backward()
            optimizers[name].step()
    workers = optimizers["plus"].workers
    for optimizer in optimizers.values():
        optimizer.leave()
    say("difference", difference(models["plus"], alone(1, 1.0, workers)), difference(models["minus"], alone(2, -1.0, workers)))


def networks():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def play(generator, critic, optimizer, critics, workers):
    """Returns the losses of the last step, of the critic and the generator."""
    entropy = nn.BCEWithLogitsLoss()
    losses = []
    for step in range(STEPS):
        real, noise = inputs_of(step, workers) * 0.5 + 2, inputs_of(step + 500, workers, 3)
        critics.zero_grad()
        of_real, of_made = critic(real), critic(generator(noise).detach())
        critics_loss = entropy(of_real, torch.ones_like(of_real)) + entropy(of_made, torch.zeros_like(of_made))
        critics_loss.backward()
        critics.step()
        optimizer.zero_grad()
        of_made = critic(generator(noise))
        loss = entropy(of_made, torch.ones_like(of_made))
        loss.backward()
        optimizer.step()
        losses = [critics_loss.item(), loss.item()]
    return losses


def trains_a_gan(job, *options):
    generator, critic = networks()
    overlap = "overlap" in options
    optimizer = sluice.DistributedOptimizer(sgd(generator), job, generator, overlap=overlap)
    critics = sluice.DistributedOptimizer(sgd(critic), job, critic, name="critic", overlap=overlap)
    play(generator, critic, optimizer, critics, [optimizer.index])
    workers = range(optimizer.workers)
    optimizer.leave()
    critics.leave()
    others = networks()
    play(*others, *map(sgd, others), workers)
    say("difference", difference(generator, others[0]), difference(critic, others[1]))


def trains_folds(job):
    """One run leaves by itself, one has left, and one has dropped its optimizer."""
    for fold in range(3):
        with job.run(f"fold-{fold}"):
            model = linear(10 + fold)
            optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
            workers = optimizer.workers
            train(model, optimizer, 1.0, [optimizer.index], 100 * fold)
            if fold == 1:
                optimizer.leave()
            if fold == 2:
                del optimizer
        say("fold", fold, "difference", difference(model, alone(10 + fold, 1.0, workers, 100 * fold)))


def names_its_runs(job):
    names = []
    for _ in range(2):
        with job.run() as name:
            names.append(name)
            first, second = linear(1), linear(2)
            optimizers = [sluice.DistributedOptimizer(sgd(first), job, first),
                          sluice.DistributedOptimizer(sgd(second), job, second, name="critic")]
            for model, optimizer in zip((first, second), optimizers):
                train(model, optimizer, 1.0, [0])
            seen = copy.deepcopy(second)
            assert next(sluice.follow(seen, job, name="critic")) == STEPS
            assert difference(seen, second) == 0
    say(*names)


def drops_what_an_exception_ends(job):
    try:
        with job.run("first"):
            model = linear(1)
            optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
            raise KeyError("broken")
    except KeyError:
        pass
    optimizer.leave()
    with job.run("second"):
        model = linear(1)
        train(model, sluice.DistributedOptimizer(sgd(model), job, model), 1.0, [0])
    say("second difference", difference(model, alone(1, 1.0, 1)))


def is_refused(job):
    def of(name, model):
        return sluice.DistributedOptimizer(sgd(model), job, model, name=name)

    model = linear(1)
    unnamed, critic = of(None, model), of("critic", linear(2))
    expect(sluice.ModelError, "give the second model a name, such as name=\"critic\"", lambda: of(None, linear(1)))
    expect(sluice.ModelError, "a model with the name \"critic\" already; give each model a name of its own",
           lambda: of("critic", linear(1)))
    expect(ValueError, "name is '', expected a text", lambda: of("", linear(1)))
    expect(ValueError, "name is 7, expected a text", lambda: of(7, linear(1)))
    expect(ValueError, "name is 'critic\\x00', expected a text", lambda: of("critic\0", linear(1)))
    expect(sluice.RemoteError, "the model's name is \"two words\"", lambda: of("two words", linear(1)))
    with job.run("fold"):
        expect(ValueError, "within the run 'fold'; end its block", job.run("inner").__enter__)
    expect(ValueError, "has had a run 'fold' already", job.run("fold").__enter__)
    expect(sluice.RemoteError, "the model's name is \"../up\"", job.run("../up").__enter__)
    critic.leave()
    again = of("critic", linear(2))
    again.leave()
    unnamed.leave()
    say("refused")


def cannot_be(job):
    """The server holds one model only."""
    model = linear(1)
    try:
        sluice.DistributedOptimizer(sgd(model), job, model, name="critic")
    except sluice.RemoteError as error:
        say("reason", error.reason, str(error))
    optimizer = sluice.DistributedOptimizer(sgd(model), job, model)
    optimizer.leave()


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](started, *sys.argv[2:])
