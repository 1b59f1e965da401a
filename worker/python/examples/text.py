#!/usr/bin/env python3
"""Trains a small transformer to predict the next letter of a text, with Adam on a parameter server.

    mpirun --bind-to none -n 3 python3 text.py --text=FILE
"""

import argparse
import math
import sys

import sluice

if __name__ == "__main__":
    job = sluice.start()
    if job.is_server:
        sys.exit(job.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from torch import nn  # noqa: E402

CONTEXT = 64  # letters that the model sees


class Transformer(nn.Module):
    """A decoder: it sees letters [batch, CONTEXT] and gives the scores of each next one, [batch, CONTEXT, letters]."""

    def __init__(self, letters, width=64, layers=2):
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.place = nn.Parameter(torch.randn(CONTEXT, width) / math.sqrt(width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.scores = nn.Linear(width, letters)
        self.register_buffer("later", torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), 1))

    def forward(self, letters):
        return self.scores(self.layers(self.letter(letters) + self.place, self.later))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--max-steps", type=int, default=300)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(flags.text, encoding="utf-8") as file:
        text = file.read()
    letters = sorted(set(text))
    encoded = torch.tensor([letters.index(letter) for letter in text])
    pieces = encoded.unfold(0, CONTEXT + 1, 1)  # [n, CONTEXT + 1], of which neighbours overlap
    model = Transformer(len(letters))
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    optimizer = sluice.DistributedOptimizer(adam, job, model, overlap=True)
    for step, rows in zip(range(flags.max_steps), sluice.DistributedSampler(pieces, 16, optimizer)):
        optimizer.zero_grad()
        batch = pieces[rows]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step(samples=len(rows), loss=loss)
        if job.speaks and (step + 1) % 50 == 0:
            print(f"step {optimizer.last.step}, loss {loss.item():.4f}", flush=True)
    optimizer.await_end()


if __name__ == "__main__":
    main()
