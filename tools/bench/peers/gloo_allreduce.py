#!/usr/bin/python3
"""A peer of Sluice: workers without a server, which sum their gradients by gloo's allreduce.

Like DistributedDataParallel, each worker divides its gradient before and applies the step itself.
"""

import torch
import torch.distributed

import participant


def main():
    flags = participant.parser(__doc__).parse_args()
    vector = participant.synthetic_gradient(flags.elements)
    gradient = torch.from_numpy(vector.copy())
    parameter = torch.nn.Parameter(torch.zeros(flags.elements))
    parameter.grad = gradient
    optimizer = torch.optim.SGD([parameter], lr=participant.LEARNING_RATE)
    rounds = 0

    def one_round():
        nonlocal rounds
        gradient.div_(flags.workers)
        torch.distributed.all_reduce(gradient)  # the same again: all workers' are alike
        optimizer.step()
        rounds += 1

    torch.distributed.init_process_group(
        "gloo", init_method=flags.address, rank=flags.index, world_size=flags.workers)
    participant.answer_parent("", one_round)
    participant.check_parameters(vector, rounds, parameter.detach().numpy())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
