"""What the tests of worker/examples share: a job of a real server, and the same training in plain numpy."""

import functools
import glob
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # The bits of a product may depend on it.
try:
    import grpc
    import numpy as np
    MISSING = ""
except ImportError as error:
    MISSING = f"{error}: `tools/setup` installs it"

PATIENCE = 50  # seconds for whatever must happen; much more than it takes
SERVER = os.path.abspath("server/sluice_server")
NUMPY_WORKER = os.path.abspath("worker/examples/numpy/worker.py")
NODE_WORKER = os.path.abspath("worker/examples/node/worker.js")
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
NODE_PACKAGES = os.path.join(CACHE, "sluice/examples/node_modules")  # as tools/setup has it
DATA = "/usr/share/datasets/fashion-mnist"
BATCH, LEARNING_RATE = 100, 0.125  # of both workers
SHAPE = (784, 10)


@functools.lru_cache(maxsize=None)
def stubs():
    """The folder with Python's code for the messages, and with a package `installed` beside it. Python can import from
    it, too."""
    folder = tempfile.TemporaryDirectory()
    protos = ["google/rpc/error"] + [f"sluice/v1/{name}" for name in
                                     ("inspector", "parameter_server", "table", "tensor", "training")]
    subprocess.run(["protoc", "-Iproto", f"--python_out={folder.name}", f"--grpc_python_out={folder.name}",
                    "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
                    *(f"proto/{proto}.proto" for proto in protos)], check=True)
    # Without this file, a package `sluice` that is installed would come before this one.
    open(f"{folder.name}/sluice/__init__.py", "x", encoding="ascii").close()
    os.makedirs(f"{folder.name}/installed/sluice")
    with open(f"{folder.name}/installed/sluice/__init__.py", "x", encoding="ascii") as file:
        file.write("raise ImportError('an installed package was imported')")
    sys.path.insert(0, folder.name)
    sys.path.append(f"{folder.name}/installed")
    return folder


class Program:
    """A process that runs until it ends or the test does."""

    def __init__(self, test, *command, **environment):
        self.output = tempfile.TemporaryFile("w+")
        test.addCleanup(self.output.close)
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT,
                                        env={**os.environ, **environment})
        test.addCleanup(self.stop)

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def end(self):
        """Its exit code, and what it wrote."""
        code = self.process.wait(PATIENCE)
        self.output.seek(0)
        return code, self.output.read()


class JobTest(unittest.TestCase):
    """Each test plays one job."""

    def setUp(self):
        if MISSING:
            self.skipTest(MISSING)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.address = f"unix:{self.folder}/server"
        self.workers = []

    def serve(self, *flags):
        self.server = Program(self, SERVER, f"--listen={self.address}", f"--checkpoint-dir={self.folder}/checkpoints",
                              *flags)

    def work(self, *flags, program=NUMPY_WORKER, changes="", server=None):
        """Starts a worker. `changes` are Python statements that change the worker in numpy."""
        command = [sys.executable, program]
        if changes:
            command = [sys.executable, "-c", f"import worker\n{changes}\nworker.main()"]
        if program == NODE_WORKER:
            command = ["node", program]
        worker = Program(self, *command, f"--server={server or self.address}", *flags, NODE_PATH=NODE_PACKAGES,
                         PYTHONPATH=f"{stubs().name}:{os.path.dirname(NUMPY_WORKER)}:{stubs().name}/installed")
        self.workers.append(worker)
        return worker

    def held_at(self, batch):
        """Changes of a worker in numpy: it computes this batch, counted from 1, only after let_go()."""
        os.mkfifo(f"{self.folder}/hold")
        return f"""
batches = []
gradient_of = worker.gradient_of
def held(*arguments):
    batches.append(arguments)
    if len(batches) == {batch}:
        open("{self.folder}/hold").read()
    return gradient_of(*arguments)
worker.gradient_of = held"""

    def let_go(self):
        with open(f"{self.folder}/hold", "w", encoding="ascii"):
            pass  # The reader meets the end of the file.

    def await_state(self, reached):
        """Waits until the server is in such a state."""
        stubs()
        from sluice.v1 import inspector_pb2, inspector_pb2_grpc  # pylint: disable=import-outside-toplevel
        with grpc.insecure_channel(self.address) as channel:
            request = inspector_pb2.WatchStateRequest(min_interval={"nanos": 100000000})
            inspector = inspector_pb2_grpc.InspectorStub(channel)
            for state in inspector.WatchState(request, wait_for_ready=True, timeout=PATIENCE):
                if reached(state):
                    return
        self.fail("the server ended before")

    def end(self):
        """Waits until all have ended well. Returns the rows of the server's table, and the workers' lines."""
        lines = []
        for worker in self.workers:
            code, output = worker.end()
            self.assertEqual(code, 0, output)
            lines += output.splitlines()
        code, table = self.server.end()
        self.assertEqual(code, 0, table)
        return dict(re.findall(r"^  +(\w[\w ]*?)  +([\d.]+)$", table, re.MULTILINE)), lines

    def expect_pushes(self, rows, **expected):
        """All pushes that the server has received are among those that are expected."""
        counters = ("accepted", "stale", "skipped", "duplicate", "rejected", "aborted")
        found = {name: int(rows.get(name, 0)) for name in ("steps", "pushes received", *counters)}
        steps = expected.pop("steps", expected["accepted"])
        received = sum(expected.values())
        self.assertEqual(found, {"steps": steps, "pushes received": received,
                                 **{name: expected.get(name, 0) for name in counters}})

    def parameters(self):
        """Those of the last checkpoint."""
        with open(max(glob.glob(f"{self.folder}/checkpoints/*.safetensors")), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            begin, end = header["weight"]["data_offsets"]
            return np.frombuffer(file.read()[begin:end], "<f4")


@functools.lru_cache(maxsize=None)
def load(part):
    def read(kind, header):
        with gzip.open(f"{DATA}/{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read()[header:], np.uint8)
    return read("images-idx3", 16).reshape(-1, SHAPE[0]), read("labels-idx1", 8)


def gradient(parameters, images, labels):
    """Of the mean cross-entropy, in float32. The operations have the order of the worker in numpy, to give its bits."""
    inputs = np.divide(images, 255, dtype=np.float32)
    scores = np.matmul(inputs, parameters.reshape(SHAPE))
    shifted = scores - np.max(scores, axis=1)[:, None]
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1))[:, None]
    errors = np.exp(logs) - np.eye(SHAPE[1], dtype=np.float32)[labels]
    return np.matmul(inputs.T, errors).reshape(-1) / np.float32(len(labels))


def trained(batches, workers):
    """The parameters after SGD with these batches, counted from 0, of each worker. Each makes one step."""
    images, labels = load("train")
    parameters = np.zeros(SHAPE[0] * SHAPE[1], np.float32)
    for batch in batches:
        total = np.zeros_like(parameters)
        for worker in range(workers):
            mine = slice(worker + batch * BATCH * workers, worker + (batch + 1) * BATCH * workers, workers)
            total += gradient(parameters, images[mine], labels[mine])
        # The learning rate is a power of 2, so whether it is multiplied apart from the sum changes no bit.
        parameters = parameters - np.float32(LEARNING_RATE) * (total / np.float32(workers))
    return parameters


def accuracy(parameters):
    images, labels = load("t10k")
    return np.mean(np.argmax(images @ parameters.reshape(SHAPE), axis=1) == labels)
