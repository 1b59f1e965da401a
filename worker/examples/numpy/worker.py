#!/usr/bin/env python3
"""A worker in numpy: softmax regression on Fashion-MNIST. worker/examples/README.md explains the protocol."""

import argparse
import gzip
import pathlib
import secrets
import threading
import time

import grpc
import numpy as np
from google.rpc import error_pb2
from sluice.v1 import parameter_server_pb2 as ps, parameter_server_pb2_grpc, training_pb2

SHAPE = (28 * 28, 10)  # of the model, one matrix: pixels, classes
BATCH = 100  # samples
CHUNK = 1 << 18  # elements in a message
EXIT_CODES = {"BAD_OPTIMIZER": 2, "NOT_FINITE": 2, "UNAVAILABLE": 3, "DRAINING": 3, "DIVERGED": 7}  # any other: 1


def reason_of(error):
    """The reason that the server gave for an error, or else gRPC's status. A server that ends may cancel calls."""
    info = error_pb2.ErrorInfo(reason=error.code().name.replace("CANCELLED", "UNAVAILABLE"))
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in error_pb2.Status.FromString(details).details:
        detail.Unpack(info)
    return info.reason


class Worker:
    """A session with the server, and the parameters that were pulled last, as one vector."""

    def __init__(self, flags):
        # Calls have no deadline, since other workers may take their time. Pings notice that the server is gone.
        self.channel = grpc.insecure_channel(flags.server, [("grpc.keepalive_time_ms", 10000)])
        self.server = parameter_server_pb2_grpc.ParameterServerStub(self.channel)
        self.token = [("authorization", f"Bearer {flags.token_file.readline().strip()}")] if flags.token_file else []
        self.parameters, self.sequence, self.known = np.zeros(np.prod(SHAPE), np.float32), 0, True
        weight = dict(name="weight", shape=SHAPE, kind="PARAMETER", dtype="FLOAT32", length=len(self.parameters))
        self.request = ps.JoinRequest(role=ps.WORKER, worker=flags.name, process_nonce=1 + secrets.randbits(63),
                                      layout={"ranges": [weight]},
                                      optimizer={"sgd": {"learning_rate": flags.learning_rate}})
        self.join()
        threading.Thread(target=self.renew_lease, daemon=True).start()

    def join(self):
        """Opens a session and takes the job's parameters. If the job has none, it gets this worker's."""
        grpc.channel_ready_future(self.channel).result(timeout=60)
        self.events = self.server.Join(self.request, metadata=self.token)  # Kept, so that the stream stays open.
        self.welcome = next(self.events).welcome
        self.known = self.known and self.welcome.resumed
        if not self.welcome.initialized:
            self.server.InitializeParams(self.stream(ps.InitializeParamsRequest, self.parameters), metadata=self.token)
        self.pull(min_step=self.welcome.step)
        return self.known

    def renew_lease(self):
        while True:
            time.sleep(self.welcome.lease.ToTimedelta().total_seconds() / 3)
            request = ps.HeartbeatRequest(session=self.welcome.session)
            self.heartbeat = self.server.Heartbeat.future(request, metadata=self.token)  # If it fails, so do pushes.

    def stream(self, kind, vector, **header):
        """What a push or an offer of parameters sends: a header, then chunks that cover the vector."""
        yield kind(header=dict(header, session=self.welcome.session))
        for first in range(0, len(vector), CHUNK):
            yield kind(chunk={"offset": first, "payload": vector[first:first + CHUNK].astype("<f4").tobytes()})

    def pull(self, **condition):
        """Takes the parameters of one step, as soon as the condition holds."""
        request = ps.PullParamsRequest(session=self.welcome.session, **condition)
        answers = self.server.PullParams(request, metadata=self.token)
        header, values = next(answers).header, np.empty_like(self.parameters)
        for answer in answers:
            part = np.frombuffer(answer.chunk.payload, "<f4")
            values[answer.chunk.offset:][:len(part)] = part
        self.parameters, self.step, self.incarnation = values, header.step, header.incarnation

    def push(self, gradient, loss):
        """Pushes a gradient, and pulls what follows. The push counts once, however often it has to be sent."""
        self.sequence += 1
        header = dict(sequence=self.sequence, step=self.step, incarnation=self.incarnation, samples=BATCH, loss=loss)
        self.known, lost = True, False
        while True:
            try:
                if lost and not self.join():
                    return "GIVEN_UP"  # Nobody knows whether it counted, so it must not be sent again.
                attempt = self.stream(ps.PushGradientsRequest, gradient, **header)
                answer = self.server.PushGradients(attempt, metadata=self.token)
                self.pull(after=self.sequence)
                return training_pb2.Disposition.Name(answer.first_disposition or answer.disposition)
            except grpc.RpcError as error:
                lost = reason_of(error) in ("UNAVAILABLE", "UNKNOWN_SESSION", "NOT_INITIALIZED")
                if not lost and reason_of(error) != "JOURNAL_STOPPED":
                    raise
                time.sleep(0.5)


def gradient_of(parameters, images, labels):
    """The gradient of a batch's mean cross-entropy, and that mean."""
    inputs, hit = images.astype(np.float32) / 255, (np.arange(len(labels)), labels)
    scores = inputs @ parameters.reshape(SHAPE)
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    loss, slopes = -scores[hit].mean(), np.exp(scores)
    slopes[hit] -= 1
    return (inputs.T @ slopes).ravel() / len(labels), loss


def load(folder, part):
    images, labels = (gzip.decompress(pathlib.Path(folder, f"{part}-{kind}-ubyte.gz").read_bytes())
                      for kind in ("images-idx3", "labels-idx1"))
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, SHAPE[0]), np.frombuffer(labels, np.uint8, offset=8)


def train(flags):
    (images, labels), (test_images, test_labels) = load(flags.data_dir, "train"), load(flags.data_dir, "t10k")
    worker = Worker(flags)
    index, workers = worker.welcome.index, worker.welcome.workers
    for batch in range(flags.max_steps):
        rows = (np.arange(batch * BATCH, (batch + 1) * BATCH) * workers + index) % len(labels)
        gradient, loss = gradient_of(worker.parameters, images[rows], labels[rows])
        print(f"push {batch + 1}: loss {loss:.4f}, {worker.push(gradient, loss)}")
    accuracy = ((test_images @ worker.parameters.reshape(SHAPE)).argmax(axis=1) == test_labels).mean()
    goodbye = ps.LeaveRequest(session=worker.welcome.session, results={"test accuracy": accuracy})
    worker.server.Leave(goodbye, metadata=worker.token)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="host:port or unix:/path")
    parser.add_argument("--token-file", type=argparse.FileType(), help="its first line is the job's token")
    parser.add_argument("--name", default=f"numpy-{secrets.token_hex(2)}", help="this worker's")
    parser.add_argument("--max-steps", type=int, default=1000, help="batches")
    parser.add_argument("--learning-rate", type=float, default=0.125)
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    flags = parser.parse_args()
    try:
        train(flags)
    except grpc.RpcError as error:
        parser.exit(EXIT_CODES.get(reason_of(error), 1), f"{parser.prog}: {error.details()}\n")
    except grpc.FutureTimeoutError:
        parser.exit(3, f"{parser.prog}: no server answers at {flags.server}\n")
    except OSError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
