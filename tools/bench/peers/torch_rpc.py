#!/usr/bin/python3
"""A peer of Sluice: PyTorch RPC, in the manner of its parameter-server tutorial.

Each worker calls a function of the server with its gradients, a tensor for each layer. The server
adds them up; the call of the last worker takes a step of torch.optim.SGD and completes the future
that all of them wait for, whose value is the parameters.
"""

import tempfile
import threading

import numpy as np
import torch
from torch.distributed import rpc

import participant

SERVER = "server"


class ParameterServer:
    """The parameters, and who has pushed. Of the server's process."""

    def __init__(self, layers, workers):
        self.workers = workers
        self.parameters = [torch.nn.Parameter(torch.zeros(size)) for size in layers]
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer = torch.optim.SGD(self.parameters, lr=participant.LEARNING_RATE)
        self.lock = threading.Lock()
        self.pushed = 0
        self.answer = torch.futures.Future()

    def push(self, gradients):
        with self.lock:
            for parameter, gradient in zip(self.parameters, gradients):
                parameter.grad += gradient
            self.pushed += 1
            answer = self.answer
            if self.pushed == self.workers:
                self._step()
                self.pushed = 0
                self.answer = torch.futures.Future()
                answer.set_result([parameter.detach() for parameter in self.parameters])
            return answer

    def _step(self):
        for parameter in self.parameters:
            parameter.grad /= self.workers
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)


_server = None


@rpc.functions.async_execution
def push(gradients):
    return _server.push(gradients)


def options(flags, address):
    chosen = {"init_method": address, "rpc_timeout": 600}
    if flags.transport:
        chosen["_transports"] = [flags.transport]
    if flags.channel:
        chosen["_channels"] = [flags.channel]
    return rpc.TensorPipeRpcBackendOptions(**chosen)


def run_server(flags):
    global _server
    _server = ParameterServer(flags.layers, flags.workers)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        address = f"file://{folder}/rendezvous"
        # Told before the rendezvous, for which the workers need it; they are ready only after it.
        answers = threading.Thread(target=participant.answer_parent, args=(address, None))
        answers.start()
        rpc.init_rpc(SERVER, rank=0, world_size=flags.workers + 1,
                     rpc_backend_options=options(flags, address))
        rpc.shutdown()  # serves until all workers have called it too
        answers.join()


def run_worker(flags):
    rpc.init_rpc(f"worker-{flags.index}", rank=flags.index + 1, world_size=flags.workers + 1,
                 rpc_backend_options=options(flags, flags.address))
    vector = participant.synthetic_gradient(flags.elements)
    gradients = [torch.from_numpy(layer) for layer in participant.cut(vector, flags.layers)]
    parameters, rounds = [], 0

    def one_round():
        nonlocal parameters, rounds
        parameters = rpc.rpc_sync(SERVER, push, args=(gradients,))
        rounds += 1

    participant.answer_parent("", one_round)
    participant.check_parameters(vector, rounds, np.concatenate([layer.numpy() for layer in parameters]))
    rpc.shutdown()


def main():
    parser = participant.parser(__doc__)
    parser.add_argument("--transport", help="of TensorPipe; its own choice if not given")
    parser.add_argument("--channel", help="of TensorPipe; its own choice if not given")
    flags = parser.parse_args()
    if flags.participant == "server":
        run_server(flags)
    else:
        run_worker(flags)


if __name__ == "__main__":
    main()
