#!/usr/bin/python3
"""Programs as users of PyTorch have them, each in one process and through Sluice.

    mpirun -n 3 python3 programs.py NAME FILE [--sluice-…]   two workers, each with half of every batch
    python3 programs.py NAME alone FILE                      one process, with whole batches

Flags of the program's own may follow FILE.

Each writes how far its parameters are from those of one process, which the other way writes to FILE.
"""

import argparse
import copy
import os
import sys
import types

import sluice

if __name__ == "__main__":  # before torch, which a process that serves does not need
    ALONE = sys.argv[2:3] == ["alone"]
    job = None if ALONE else sluice.start()
    if job is not None and job.is_server:
        sys.exit(job.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.optim import lr_scheduler, swa_utils  # noqa: E402


class OneProcess:
    """What a program does without Sluice."""

    def optimizer(self, optimizer, _model, **_options):
        return optimizer

    def part(self, batch):
        return batch

    def clip(self, optimizer, norm):
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], norm)

    def mean(self, loss):
        return loss.detach()

    rank, size = 0, 1

    def meet(self):
        pass

    def leave(self, _optimizer):
        pass

    def batches(self, data, size, _optimizer):
        place = types.SimpleNamespace(index=0, workers=1, batches_before=0, earlier_launches=[])
        return sluice.DistributedSampler(data, size, place)


class Distributed:
    """The same through Sluice: the lines that a program changes."""

    def __init__(self, the_job):
        self.job = the_job
        self.rank, self.size = the_job.rank, the_job.size

    def optimizer(self, optimizer, model, **options):
        return sluice.DistributedOptimizer(optimizer, self.job, model, **options)

    def part(self, batch):
        return batch[self.job.rank::self.job.size]

    def clip(self, optimizer, norm):
        optimizer.clip_grad_norm_(norm)

    def mean(self, loss):
        return self.job.all_reduce(loss.detach().clone(), "mean")

    def meet(self):
        self.job.barrier()

    def leave(self, optimizer):
        optimizer.leave()

    def batches(self, data, size, optimizer):
        return sluice.DistributedSampler(data, size // self.size, optimizer)


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mlp(seed, *widths):
    torch.manual_seed(seed)
    layers = [layer for before, after in zip(widths, widths[1:]) for layer in (nn.Linear(before, after), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def steps_of(optimizer, losses):
    for loss in losses:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


# Each program gets one of the two above, and returns the models that it has trained.

def regression(how):
    model = mlp(1, 3, 8, 1)
    optimizer = how.optimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), model)
    for step in range(60):
        x = how.part(drawn(step, 8, 3))
        steps_of(optimizer, [lambda x=x: F.mse_loss(model(x), x.sum(1, keepdim=True))])
    return [model]


def per_layer_options_with_one_cycle(how):
    model = mlp(2, 4, 8, 3)
    groups = [{"params": [model[0].weight], "lr": 1e-3}, {"params": [model[2].weight], "weight_decay": 0.1},
              {"params": [model[0].bias, model[2].bias], "weight_decay": 0, "betas": (0.8, 0.99)}]
    optimizer = how.optimizer(torch.optim.AdamW(groups, lr=3e-3), model)
    schedule = lr_scheduler.OneCycleLR(optimizer, [1e-3, 3e-3, 3e-3], total_steps=200)
    for step in range(200):
        x = how.part(drawn(step, 8, 4))
        steps_of(optimizer, [lambda x=x: F.cross_entropy(model(x), x[:, :3].argmax(1))])
        schedule.step()
    return [model]


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(11, 6)
        self.cell = nn.LSTM(6, 8, batch_first=True)
        self.output = nn.Linear(8, 11)

    def forward(self, words):
        return self.output(self.cell(self.embedding(words))[0])


def sequence_with_clipping_and_annealing(how):
    model = Sequence()
    optimizer = how.optimizer(torch.optim.Adam(model.parameters(), lr=0.01), model)
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 10)
    for step in range(40):
        words = how.part(torch.randint(11, (6, 7), generator=torch.Generator().manual_seed(step)))
        optimizer.zero_grad()
        F.cross_entropy(model(words[:, :-1]).transpose(1, 2), words[:, 1:]).backward()
        how.clip(optimizer, 0.5)
        optimizer.step()
        schedule.step()
    return [model]


def accumulated_batches_on_a_plateau(how):
    model = mlp(4, 3, 6, 1)
    optimizer = how.optimizer(torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.3), model)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    for step in range(30):
        optimizer.zero_grad()
        total = torch.zeros(())
        for part in range(3):
            x = how.part(drawn(100 * step + part, 4, 3))
            loss = F.mse_loss(model(x), x.prod(1, keepdim=True)) / 3
            loss.backward()
            total += loss.detach()
        optimizer.step()
        schedule.step(how.mean(total))
    assert optimizer.param_groups[0]["lr"] < 0.01
    return [model]


def policy_gradient(how):
    policy = mlp(5, 4, 8, 2)
    optimizer = how.optimizer(torch.optim.Adam(policy.parameters(), lr=0.01), policy)
    for episode in range(40):
        state, luck = drawn(episode, 8, 4), torch.rand(8, generator=torch.Generator().manual_seed(episode))
        with torch.no_grad():
            action = (policy(state).softmax(1)[:, 0] < luck).long()  # of all, so that the baseline is one
        reward = (action == (state[:, 0] > 0)).float()
        advantage = reward - reward.mean()
        chosen = F.cross_entropy(policy(how.part(state)), how.part(action), reduction="none")
        steps_of(optimizer, [lambda: (chosen * how.part(advantage)).mean()])
    return [policy]


def transfer_with_a_frozen_part(how):
    model = nn.Sequential(mlp(6, 4, 6, 6), nn.BatchNorm1d(6, affine=False), nn.Linear(6, 2))
    model[0].requires_grad_(False)
    model[1].eval()
    optimizer = how.optimizer(torch.optim.Adagrad([p for p in model.parameters() if p.requires_grad], lr=0.05), model)
    schedule = lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    for step in range(30):
        x = how.part(drawn(step, 6, 4))
        steps_of(optimizer, [lambda x=x: F.cross_entropy(model(x), (x[:, 0] > 0).long())])
        schedule.step()
    return [model]


def averaged_weights(how):
    model = mlp(7, 3, 6, 1)
    averaged = swa_utils.AveragedModel(model)
    optimizer = how.optimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=5)
    for step in range(30):
        x = how.part(drawn(step, 8, 3))
        steps_of(optimizer, [lambda x=x: F.mse_loss(model(x), x[:, :1])])
        schedule.step()
        averaged.update_parameters(model)
    return [model, averaged.module]


def an_optimizer_that_the_server_lacks(how):
    model = mlp(8, 3, 6, 1)
    optimizer = how.optimizer(torch.optim.RAdam(model.parameters(), lr=0.01), model)
    schedule = lr_scheduler.StepLR(optimizer, 20)
    for step in range(60):
        x = how.part(drawn(step, 8, 3))
        steps_of(optimizer, [lambda x=x: F.mse_loss(model(x), x[:, :1])])
        schedule.step()
    return [model]


def gan(how):
    generator, critic = mlp(9, 2, 8, 2), mlp(10, 2, 8, 1)
    makes = how.optimizer(torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999)), generator)
    judges = how.optimizer(torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999)), critic, name="critic")
    for step in range(40):
        real, noise = how.part(drawn(step, 8, 2) + 3), how.part(drawn(1000 + step, 8, 2))
        steps_of(judges, [lambda real=real, noise=noise: F.softplus(-critic(real)).mean()
                          + F.softplus(critic(generator(noise).detach())).mean()])
        steps_of(makes, [lambda noise=noise: F.softplus(-critic(generator(noise))).mean()])
    return [generator, critic]


def actor_with_twin_critics(how):
    actor, twins = mlp(11, 3, 8, 1), [mlp(12, 4, 8, 1), mlp(13, 4, 8, 1)]
    targets = copy.deepcopy(twins)
    acts = how.optimizer(torch.optim.Adam(actor.parameters(), lr=1e-3), actor, name="actor")
    judges = [how.optimizer(torch.optim.Adam(twin.parameters(), lr=1e-3), twin, name=f"critic-{number}")
              for number, twin in enumerate(twins)]
    for target, twin in zip(targets, twins):
        target.load_state_dict(twin.state_dict())
    for step in range(30):
        state, action, after = (how.part(drawn(10 * step + kind, 8, width)) for kind, width in ((0, 3), (1, 1), (2, 3)))
        with torch.no_grad():
            future = torch.cat([after, actor(after)], 1)
            value = state[:, :1] + 0.9 * torch.minimum(targets[0](future), targets[1](future))
        for twin, judge in zip(twins, judges):
            steps_of(judge, [lambda twin=twin: F.mse_loss(twin(torch.cat([state, action], 1)), value)])
        steps_of(acts, [lambda: -twins[0](torch.cat([state, actor(state)], 1)).mean()])
        with torch.no_grad():
            for target, twin in zip(targets, twins):
                for old, new in zip(target.parameters(), twin.parameters()):
                    old.mul_(0.9).add_(new, alpha=0.1)
    return [actor, *twins, *targets]


def layers_that_learn_by_themselves(how):
    """Each layer has a loss of its own (forward-forward), and an optimizer."""
    torch.manual_seed(14)
    layers = [nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 6)]
    optimizers = [how.optimizer(torch.optim.SGD(layer.parameters(), lr=0.05, momentum=0.5), layer, name=f"layer-{number}")
                  for number, layer in enumerate(layers)]
    for step in range(30):
        good, bad = how.part(drawn(step, 8, 4).abs()), how.part(-drawn(step, 8, 4).abs())
        for layer, optimizer in zip(layers, optimizers):
            steps_of(optimizer, [lambda layer=layer, good=good, bad=bad: F.softplus(
                layer(bad).relu().square().mean(1) - layer(good).relu().square().mean(1)).mean()])
            good, bad = layer(good).relu().detach(), layer(bad).relu().detach()
    return layers


def segments_with_an_optimizer_each(how):
    """One loss through both, each with an optimizer of another kind."""
    encoder, decoder = mlp(15, 4, 6, 2), mlp(16, 2, 6, 4)
    optimizers = [how.optimizer(torch.optim.SGD(encoder.parameters(), lr=0.05), encoder, name="encoder"),
                  how.optimizer(torch.optim.NAdam(decoder.parameters(), lr=2e-3), decoder, name="decoder")]
    for step in range(40):
        x = how.part(drawn(step, 8, 4))
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        for optimizer in optimizers:
            optimizer.step()
    return [encoder, decoder]


class Stripes(torch.utils.data.Dataset):
    """Images with a stripe at the row that is their label."""

    def __len__(self):
        return 64

    def __getitem__(self, row):
        image = drawn(row, 1, 8, 8) * 0.3
        image[:, row % 8] += 2
        return image, row % 8


def images_with_flags_and_a_snapshot(how):
    """As a program of DistributedDataParallel: it wraps, then loads its snapshot, and has flags with names of Sluice's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="run")
    flags = parser.parse_args(OWN_FLAGS)
    torch.set_num_threads(flags.threads)
    snapshot = f"{FILE}.{flags.name}.{how.size}"
    data = Stripes()
    for run in range(2):  # of the program
        torch.manual_seed(17)
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 8))
        optimizer = how.optimizer(torch.optim.AdamW(model.parameters(), lr=0.01), model, name=f"{flags.name}-{run}")
        schedule = lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
        first = 0
        if os.path.exists(snapshot):
            saved = torch.load(snapshot)
            first = saved["epoch"]
            for part, name in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule")):
                part.load_state_dict(saved[name])
        sampler = torch.utils.data.DistributedSampler(data, how.size, how.rank, seed=3)
        loader = torch.utils.data.DataLoader(data, 16 // how.size, sampler=sampler, num_workers=flags.workers)
        for epoch in range(first, first + 3):
            sampler.set_epoch(epoch)
            for images, labels in loader:
                steps_of(optimizer, [lambda images=images, labels=labels: F.cross_entropy(model(images), labels)])
            schedule.step()
        how.meet()  # all have looked for the snapshot
        state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        if how.rank == 0:
            torch.save(state, snapshot)
        how.meet()
        how.leave(optimizer)
    return [model]


class Words(torch.utils.data.Dataset):
    """Texts as data of a program's own: of several lengths, so that batches are padded."""

    def __init__(self):
        generator = torch.Generator().manual_seed(18)
        self.texts = [torch.randint(1, 12, (3 + row % 4,), generator=generator) for row in range(50)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, row):
        return self.texts[row], (self.texts[row] % 2).sum().float()


def padded(items):
    texts, values = zip(*items)
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.stack(values)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(19)
        self.embedding = nn.Embedding(12, 6, padding_idx=0)
        self.output = nn.Linear(6, 1)

    def forward(self, words):
        return self.output(self.embedding(words).sum(1)).squeeze(1)


def data_of_its_own(how):
    model, data = Counter(), Words()
    optimizer = how.optimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.8), model)
    loader = torch.utils.data.DataLoader(data, batch_sampler=how.batches(data, 8, optimizer), collate_fn=padded, num_workers=1)
    for _ in range(5):
        for words, values in loader:
            steps_of(optimizer, [lambda words=words, values=values: F.mse_loss(model(words), values)])
    return [model]


PROGRAMS = {program.__name__: program for program in (
    regression, per_layer_options_with_one_cycle, sequence_with_clipping_and_annealing, accumulated_batches_on_a_plateau,
    policy_gradient, transfer_with_a_frozen_part, averaged_weights, an_optimizer_that_the_server_lacks, gan,
    actor_with_twin_critics, layers_that_learn_by_themselves, segments_with_an_optimizer_each,
    images_with_flags_and_a_snapshot, data_of_its_own)}


def states_of(models):
    return [tensor.detach().clone() for model in models for tensor in model.state_dict().values()]


if __name__ == "__main__":
    torch.set_num_threads(1)
    PROGRAM = PROGRAMS[sys.argv[1]]
    FILE, *OWN_FLAGS = sys.argv[3:] if ALONE else sys.argv[2:]
    if ALONE:
        torch.save(states_of(PROGRAM(OneProcess())), FILE)
    else:
        OWN, OTHERS = states_of(PROGRAM(Distributed(job))), torch.load(FILE)
        FARTHEST = max((own.double() - other.double()).abs().max().item() for own, other in zip(OWN, OTHERS))
        os.write(1, f"difference {FARTHEST}\n".encode())
