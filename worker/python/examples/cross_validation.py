#!/usr/bin/python3
"""Scores a classifier of skorch by cross-validation and by a grid search, each training on all workers.

    mpirun -n 3 python3 cross_validation.py
"""

import sys

import sluice

if __name__ == "__main__":  # before PyTorch, which a process that serves does not need
    job = sluice.start()
    if job.is_server:
        sys.exit(job.serve())

# pylint: disable=wrong-import-position
import skorch  # noqa: E402
import torch  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from skorch.callbacks import LRScheduler  # noqa: E402
from torch import nn  # noqa: E402


class DistributedClassifier(skorch.NeuralNetClassifier):
    """Each fit() is a training of its own, in which every worker takes its part of the rows."""

    def initialize_optimizer(self, *args, **kwargs):
        super().initialize_optimizer(*args, **kwargs)
        self.optimizer_ = sluice.DistributedOptimizer(self.optimizer_, job, self.module_)
        return self

    def fit(self, X, y, **fit_params):
        part = slice(job.rank, len(X) // job.size * job.size, job.size)
        with job.run():
            super().fit(X[part], y[part], **fit_params)
            self.optimizer_.await_end()  # the same parameters in all workers
        return self


def make_classifier():
    torch.manual_seed(1)
    return DistributedClassifier(
        nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)), criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam,
        lr=0.01, batch_size=32, max_epochs=8, train_split=None, verbose=0,
        callbacks=[("schedule", LRScheduler(policy="StepLR", step_size=4))])


if __name__ == "__main__":
    digits, labels = load_digits(return_X_y=True)
    digits = (digits / 16).astype("float32")
    scores = cross_val_score(make_classifier(), digits, labels, cv=3)
    search = GridSearchCV(make_classifier(), {"lr": [0.01, 1e-5], "callbacks__schedule__step_size": [4]}, cv=2)
    search.fit(digits, labels)
    print(f"worker {job.rank}: scores {scores.round(4).tolist()}, best rate {search.best_params_['lr']}", flush=True)
