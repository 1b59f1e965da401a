#!/usr/bin/python3
"""A peer of Sluice: a parameter server of mpi4py and Blosc, in the manner of ps_pytorch.

Each layer is a message of its own: an array that Blosc packs (pickle, snappy, its default level)
and mpi4py pickles. Workers send gradients from the last layer to the first, each after the one
before has gone; the server takes them as they come, averages, applies SGD, and broadcasts layer by
layer. ps_pytorch sends gradients as float64 and parameters as float32.
"""

import os

import blosc
import numpy as np
from mpi4py import MPI

import participant

SERVER = 0
FIRST_TAG = 88
CODEC = "snappy"


def buffer_for(size, dtype):
    """Where a message lies until it has come whole: the array as it is, and what is around it."""
    return bytearray(size * np.dtype(dtype).itemsize + 4096)


def pack(layer):
    return blosc.pack_array(layer, cname=CODEC)


class Server:
    def __init__(self, comm, flags):
        self.comm = comm
        self.flags = flags
        self.parameters = [np.zeros(size, np.float32) for size in flags.layers]
        # In the order of the requests: all layers of the first worker, then of the second.
        self.buffers = [buffer_for(size, flags.dtype)
                        for _ in range(flags.workers) for size in flags.layers]

    def one_round(self):
        layers = len(self.flags.layers)
        requests = [self.comm.irecv(buffer, source=1 + i // layers, tag=FIRST_TAG + i % layers)
                    for i, buffer in enumerate(self.buffers)]
        sums = [np.zeros(size, self.flags.dtype) for size in self.flags.layers]
        for _ in requests:
            which, message = MPI.Request.waitany(requests)
            sums[which % layers] += blosc.unpack_array(message)
        for parameter, total in zip(self.parameters, sums):
            parameter -= (participant.LEARNING_RATE / self.flags.workers) * total
            self.comm.bcast(pack(parameter), root=SERVER)


class Worker:
    def __init__(self, comm, flags):
        self.comm = comm
        self.dtype = flags.dtype
        self.vector = participant.synthetic_gradient(flags.elements)
        self.gradients = participant.cut(self.vector, flags.layers)
        self.parameters = []
        self.rounds = 0

    def one_round(self):
        sent = MPI.REQUEST_NULL
        for i, gradient in reversed(list(enumerate(self.gradients))):
            message = pack(gradient.astype(self.dtype))
            sent.wait()
            sent = self.comm.isend(message, dest=SERVER, tag=FIRST_TAG + i)
        sent.wait()
        self.parameters = [blosc.unpack_array(self.comm.bcast(None, root=SERVER))
                           for _ in self.gradients]
        self.rounds += 1

    def check(self):
        participant.check_parameters(self.vector, self.rounds, np.concatenate(self.parameters))


def main():
    parser = participant.parser(__doc__)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64",
                        help="of gradients on their way")
    flags = parser.parse_args()
    blosc.set_nthreads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    comm = MPI.COMM_WORLD
    if comm.rank == SERVER:
        participant.answer_parent("", Server(comm, flags).one_round)
    else:
        worker = Worker(comm, flags)
        participant.answer_parent("", worker.one_round)
        worker.check()


if __name__ == "__main__":
    main()
