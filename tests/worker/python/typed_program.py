"""A user's program with every public name of the package. mypy reads it, and it never runs."""

import sys
from typing import Dict, List, Optional

import sluice
import torch


def train(job: sluice.Job, model: torch.nn.Module) -> Optional[sluice.Round]:
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model, overlap=True)
    sampler = sluice.DistributedSampler(1000, 10, optimizer, seed=2)
    sampler.set_epoch(1)
    rows: List[int]
    for rows in sampler:
        optimizer.zero_grad()
        loss = model(torch.ones(len(rows), 3)).sum()
        loss.backward()
        optimizer.attach("test", b"bytes")
        optimizer.step(samples=len(rows), loss=loss)
    place: int = optimizer.index + optimizer.workers + optimizer.batches_before
    print(place, len(sampler), optimizer.param_groups[0]["lr"])
    optimizer.wait()
    optimizer.await_end()
    optimizer.report(test_accuracy=0.5)
    return optimizer.last


def train_remotely(job: sluice.Job) -> Dict[str, torch.Tensor]:
    parts = [sluice.RemoteModule(job), sluice.RemoteModule(job, "127.0.0.1:7073")]
    model = torch.nn.Sequential(*parts)
    sampler = sluice.DistributedSampler(1000, 10, parts[0])
    for rows in sampler:
        loss = model(torch.ones(len(rows), 3)).sum()
        loss.backward()
        sluice.RemoteModule.step_all(parts, samples=10, loss=loss)
    place: int = parts[0].index + parts[0].workers + parts[0].batches_before
    print(place, parts[0].step(samples=place, loss=0.5).disposition, parts[0].call("method", 1, "text", {"a": torch.ones(2)}))
    parts[0].await_end()
    parts[1].leave()
    return parts[0].gradients("weight")


def serve_model(job: sluice.Job) -> int:
    model = torch.nn.Linear(3, 1)
    return sluice.serve_module(job, model, torch.optim.SGD(model.parameters(), lr=0.1), at="127.0.0.1:7072", methods=["extra_repr"],
                               max_trainers=2, trainers=1)


class WithTables(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = sluice.RemoteEmbedding(4, optimizer=(torch.optim.Adagrad, {"lr": 0.1}), evict_after=10)
        self.tags = sluice.RemoteEmbeddingBag(4, mode="sum", initializer="uniform", scale=0.1)

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        items: torch.Tensor = self.items(ids)
        self.tags.prefetch(ids)
        return items.sum() + self.tags.forward(ids, offsets).sum()


def main() -> None:
    job = sluice.start(mode="async", max_staleness=3, token_file=None)
    if job.is_server:
        sys.exit(job.serve())
    model = torch.nn.Linear(3, 1)
    try:
        report = train(job, model)
        if report is not None and job.speaks:
            print(report.step, report.disposition.upper(), report.staleness)
    except (sluice.DivergedError, sluice.ServerGoneError) as error:
        print(error.code.lower(), error.reason.lower())
    except sluice.RemoteError as error:
        print(error.reason)
    except sluice.ModelError as error:
        print(error)
    with job.run("fold-1") as run:
        critic = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job, model, name="critic")
        print(run.upper(), critic.index)
    steps: List[int] = list(sluice.follow(model, job, every=10, name="critic"))
    tensors: Dict[str, torch.Tensor] = sluice.load_checkpoint("run")
    ids, rows = sluice.load_table("run", "items")
    print(steps, tensors, ids.tolist(), rows.tolist(), list(sluice.follow(model, server="host:1")))


main()
