"""The part of a process in a job: its server, or one of its workers."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from sluice import _ending, _library
from sluice._library import library
from sluice.errors import RemoteError

if TYPE_CHECKING:
    import torch
    from sluice.exchange import Exchange
    from sluice.program_optimizer import MakeOptimizer

# Gets the worker's name, the step on which its gradient was computed, and what it has attached: [(kind, data), …].
AttachmentReader = Callable[[str, int, List[Tuple[str, bytes]]], Any]

# Of a flag: True and False switch it on and off, and None leaves it out.
Setting = Union[str, int, float, bool, "os.PathLike[str]", None]

_state: Dict[str, Any] = {"forked": False, "started": False, "used": False, "server_optimizer": None}


def _after_fork_in_child() -> None:
    # The child has none of the threads that the library needs: DataLoader's workers must not use it.
    _state["forked"] = _state["used"]


os.register_at_fork(after_in_child=_after_fork_in_child)


def forked() -> bool:
    """Whether this process is a fork of one that has used the library."""
    is_fork: bool = _state["forked"]
    return is_fork


def brings_optimizer() -> bool:
    """Whether this program has a server_optimizer."""
    return _state["server_optimizer"] is not None


def check_not_forked() -> None:
    if forked():
        raise RuntimeError("this process is a fork of the one that uses the server, such as a worker of DataLoader, and "
                           "has no connection; start it by multiprocessing's \"spawn\" if it needs one")


def _check_runs_once() -> None:
    """Raises in a child of multiprocessing that would take part in the launch as its parent does."""
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # multiprocessing itself tells by it that the child imports the script
        raise RuntimeError("sluice.start() was called while a child process, such as a worker of DataLoader, imports the "
                           "script that its parent runs. Put the call, and what else only the parent shall do, below "
                           "`if __name__ == \"__main__\":`")
    if multiprocessing.parent_process() is not None and _launched():
        raise RuntimeError(f"sluice.start() was called in {process.name}, a child of a process that mpirun or srun has "
                           "started: only that process is part of the launch. Call it there, or let mpirun start as many "
                           "processes as you need")


def connect(settings: Mapping[str, Setting], model: str) -> ctypes.c_void_p:
    """Returns the handle of a job that does not take part, for sluice_follower_create(). `settings` become flags, and
    `model` is as model_name() returns it."""
    check_not_forked()
    _state["used"] = True
    flags = [os.fsencode(flag) for flag in _flags_of(settings)]
    handle = ctypes.c_void_p()
    _library.check(library.sluice_connect((ctypes.c_char_p * max(1, len(flags)))(*flags), len(flags),
                                          ctypes.byref(handle)))
    if not model:
        return handle
    try:
        return _model_handle(handle, model)
    finally:
        library.sluice_job_free(handle)


def _model_handle(job: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _library.check(library.sluice_job_model(job, name.encode(), ctypes.byref(handle)))
    return handle


def model_name(name: Optional[str], run: Optional[str] = None) -> str:
    """Returns the name by which the server knows a model that the program calls so; "" for the one without a name."""
    if name is not None and not (isinstance(name, str) and name and "\0" not in name):
        raise ValueError(f"name is {name!r}, expected a text such as \"critic\", or None for the model without a name")
    return ".".join(part for part in (run, name) if part is not None)


class Job:
    """What sluice.start() returns.

    Attributes:
      is_server: whether this process serves. Then call serve(), and nothing else.
      speaks: whether this worker should print its progress: worker 0 of a launch, or one that was started by hand.
      rank, size: this worker's place among the workers of its launch, from 0 on, and how many they are, without the
        servers; known before a model is made. None in a worker that was started by hand: DistributedOptimizer.index and
        workers then tell what the server has chosen. The rank of a server is None, too.
    """

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self._models = {"": handle}  # by name; none is freed before the process ends
        self._joined: Dict[str, Callable[[], Any]] = {}  # the client that has joined, or None; by the model's name
        self._run: Optional[str] = None  # the name of the run whose block the program is in
        self._runs: Set[str] = set()
        self._counted_runs = 0
        self._optimizers: List[Callable[[], Any]] = []  # those that were made in this run, or None for one that was dropped
        self._layouts: Set[str] = set()  # those after the first that this process has trained, by their models' names
        self._exchanges: Optional["Exchange"] = None
        self.is_server = bool(library.sluice_is_server(handle))
        self.speaks = bool(library.sluice_speaks(handle))
        self.rank = _number(library.sluice_job_rank(handle))
        self.size = _number(library.sluice_job_size(handle))
        if self.is_server:
            # A process that serves must not end before the server has: serve() blocks until then.
            self._finalizer = weakref.finalize(self, _free, handle)

    def serve(self) -> int:
        """Serves until the job is over, and prints its closing table. Returns the exit code for sys.exit().

        Ctrl-C and SIGTERM end the job: the server drains and saves what it was told to save.
        """
        if not self.is_server:
            raise ValueError("serve() was called on a worker; call it only if job.is_server")
        code: int = library.sluice_serve(self._handle)
        return code

    @contextlib.contextmanager
    def run(self, name: Optional[str] = None) -> Iterator[str]:
        """In its block, every optimizer trains a model of its own: for several trainings, one after the other.

            for fold in range(5):
                with job.run(f"fold-{fold}"):
                    train(make_model(), fold)      # makes its sluice.DistributedOptimizer

        The models of the run "fold-2" have the names "fold-2", and "fold-2.critic" with name="critic"; follow() with this
        job follows those. So they begin with new parameters. All workers go through the same runs in the same order. At
        the end of the block, the optimizers that were made in it leave, unless they have left. If an exception ends it,
        they are dropped as everywhere.

        Args:
          name: of the run; by default "run-1", "run-2", and so on.

        Yields: the run's name.

        Raises:
          ValueError: this process has had a run of that name, or is in the block of another one.
          RemoteError: no model can have that name.
        """
        if self._run is not None:
            raise ValueError(f"job.run() was called within the run {self._run!r}; end its block before, or give the second "
                             "model a name: DistributedOptimizer(…, name=\"critic\")")
        if name is None:
            self._counted_runs += 1
            name = f"run-{self._counted_runs}"
        self._handle_of(model_name(name))
        if name in self._runs:
            raise ValueError(f"this process has had a run {name!r} already, whose parameters the job still has; give each run "
                             "a name of its own")
        self._runs.add(name)
        self._run = name
        try:
            yield name
            for made in self._optimizers:
                optimizer = made()
                if optimizer is not None and not optimizer._client.left:
                    optimizer.leave()
        finally:
            self._run, self._optimizers = None, []

    def all_reduce(self, tensor: "torch.Tensor", op: str = "sum", timeout: float = 600) -> "torch.Tensor":
        """Makes `tensor` the sum of all workers' tensors, element by element, and returns it: for a mean of accuracies.

        Called by all workers of the launch, with tensors of one shape and type, in one order with broadcast() and barrier(),
        and before the last optimizer leaves: then the server may end. All get the same bits. At most 64 MiB.

        Args:
          op: "sum", "mean", "min" or "max".
          timeout: seconds to wait for the others.

        Raises:
          ValueError: an argument is wrong, this process has no rank, or another worker makes another call, or has another shape or type: then all raise it.
          RemoteError: some workers have not come within `timeout` (of a large tensor: for one of its pieces), which it names:
            make the same call again. If a large tensor's broke off in the middle, all then get a ValueError. Or the server
            has gone.
        """
        return self._exchange().all_reduce(tensor, op, timeout)

    def broadcast(self, value: Any = None, root: int = 0, timeout: float = 600) -> Any:
        """Returns the value that worker `root` has given; what the others give does not matter.

        A value consists of tensors, numbers, texts, bytes, and lists, tuples and dictionaries of those; else TypeError, in
        all workers. At most 64 MiB. The rest is as all_reduce().
        """
        return self._exchange().broadcast(value, root, timeout)

    def barrier(self, timeout: float = 600) -> None:
        """Returns when all workers of the launch have called it. The rest is as all_reduce()."""
        self._exchange().barrier(timeout)

    def _exchange(self) -> "Exchange":
        check_not_forked()
        from sluice.exchange import Exchange  # pylint: disable=import-outside-toplevel  # of PyTorch, which a server lacks
        if self._exchanges is None:
            self._exchanges = Exchange(self._handle, self.rank, self.size)
        return self._exchanges

    def _hold(self) -> None:
        """From now on the job does not end before this process."""
        check_not_forked()
        _library.BlockingCall(library.sluice_hold_job, self._handle).wait()

    def _model_names(self) -> List[str]:
        """Returns the names of the job's models that have one; none if the server is too old for them."""
        check_not_forked()
        names = ctypes.create_string_buffer(_library.MODEL_NAMES)
        try:
            _library.BlockingCall(library.sluice_model_names, self._handle, names).wait()
        except RemoteError as error:
            if error.code != "UNIMPLEMENTED":
                raise
            return []
        return [name.decode() for name in names.raw.partition(b"\0\0")[0].split(b"\0") if name]

    def _handle_of(self, model: str) -> ctypes.c_void_p:
        """Returns the handle of the model of that name, as model_name() returns it."""
        if model not in self._models:
            self._models[model] = _model_handle(self._handle, model)
        return self._models[model]


def _number(number: int) -> Optional[int]:
    return None if number < 0 else number


def _free(handle: ctypes.c_void_p) -> None:
    if not forked():
        library.sluice_job_free(handle)


def _flags_of(settings: Mapping[str, Setting], prefix: str = "--") -> List[str]:
    """Returns command-line flags: mode="async" becomes --mode=async, wait_for_more=True becomes --wait-for-more."""
    flags = []
    for name, value in settings.items():
        flag = prefix + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return flags


def start(flags: Optional[Sequence[str]] = None, *, server_optimizer: Optional["MakeOptimizer"] = None,
          on_attachments: Optional[AttachmentReader] = None, **settings: Setting) -> Job:
    """Takes part in the launch, and returns this process's Job. Called once, from the main thread.

    Under mpirun or srun, rank 0 becomes the server, and the other ranks become workers. With --sluice-server=host:port,
    or SLUICE_SERVER=host:port in the environment, every process becomes a worker of a server that runs elsewhere.

    Args:
      flags: By default Sluice's flags are those of sys.argv that begin with --sluice-, such as --sluice-mode=async. They
        are taken out of it, and the program's own stay there; so call it before you parse your own. "all" also takes
        those without the prefix: --mode=async. A flag of your own that has the name of one of Sluice's, such as
        --workers, then never reaches your program. A list of "--name=value" takes the place of sys.argv.
        --sluice-help lists the flags.
      server_optimizer: makes the optimizer with which the server steps, of a class that Sluice does not have. It is called
        with the model's parameters, [(name, parameter), …], in the process that serves: an optimizer of torch.optim with
        the class, options and groups that the workers give DistributedOptimizer. Its state is tensors and numbers, and
        its step depends on nothing else. For every mode, and for one server.
      on_attachments: called in the process that serves with what optimizer.attach() has attached to a push that counts:
        on_attachments("worker-0", step, [("kind", b"data"), …]). Threads of the server call it, and the push is answered when
        it returns. An exception is printed, and changes nothing.
      **settings: flags by their names, with _ for -: mode="async", push_encoding="int8". The command line overrides
        them.

    A program that uses MPI itself, such as by mpi4py, imports it before this call, on all ranks: then Sluice uses MPI
    as it is. Otherwise MPI is over when this returns, and using it later ends the process.

    Raises:
      RuntimeError: the process is a child of the one that takes part.
      RemoteError: a flag is wrong, or Sluice has none of that name, or the launch failed. Under a launcher one rank prints the error, and all exit.
    """
    _check_may_begin("sluice.start()")
    if isinstance(flags, str) and flags != "all":
        raise ValueError(f"flags is {flags!r}, expected \"all\" or a list of flags")
    given = sys.argv[1:] if flags is None or flags == "all" else list(flags)
    words = [sys.argv[0] or "python3", *_flags_of(settings, "--sluice-"), *given]
    if _launched() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # So that the library's handler counts: a worker lives two seconds longer than Ctrl-C, while the server ends.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _state["used"] = True
    array = (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words], None)
    count = ctypes.c_int(len(words))
    _bring_to_server(server_optimizer, on_attachments)
    handle = ctypes.c_void_p()
    begin = library.sluice_start if flags is None else library.sluice_start_with_all_flags
    code = begin(ctypes.byref(count), array, ctypes.byref(handle))
    if code != _library.OK:
        asks_for_help = flags is None and not {"-h", "--help"}.isdisjoint(sys.argv[1:])
        if _launched() or code == _library.CANCELLED or asks_for_help:  # the command line asks for a text
            sys.exit(library.sluice_report_error(array[0]))
        raise _library.last_error(code)
    _state["started"] = True
    _ending.watch()
    rest = [os.fsdecode(array[i] or b"") for i in range(1, count.value)]
    if flags is None or flags == "all":
        sys.argv[1:] = rest
    elif rest:
        raise ValueError(f"sluice.start() does not know {rest[0]}; `sluice_train --help` lists the flags")
    return Job(handle)


def begin_server(server_optimizer: Optional["MakeOptimizer"], on_attachments: Optional[AttachmentReader]) -> None:
    """What run_server() does first."""
    _check_may_begin("sluice.run_server()")
    _state["used"] = _state["started"] = True
    _bring_to_server(server_optimizer, on_attachments)


def _check_may_begin(call: str) -> None:
    """A process takes part once, from its main thread."""
    if _state["started"]:
        raise ValueError(f"{call} was called twice, or after the other of sluice.start() and sluice.run_server(); keep what the "
                         "first call has returned")
    if threading.current_thread() is not threading.main_thread():
        raise ValueError(f"{call} was called from another thread than the main one, where MPI must start")
    check_not_forked()
    _check_runs_once()


def _bring_to_server(server_optimizer: Optional["MakeOptimizer"], on_attachments: Optional[AttachmentReader]) -> None:
    """Gives the library what the server of this process takes from the program."""
    if server_optimizer is not None:
        from sluice.program_optimizer import ServerOptimizer  # pylint: disable=import-outside-toplevel  # of PyTorch
        _state["server_optimizer"] = ServerOptimizer(server_optimizer)
        library.sluice_set_server_optimizer(ctypes.byref(_state["server_optimizer"].functions))
    if on_attachments is not None:
        _state["attachment_reader"] = _library.ReadAttachments(_reader_of(on_attachments))
        library.sluice_set_attachment_reader(_state["attachment_reader"], None)


def _reader_of(read: AttachmentReader) -> Callable[..., None]:
    def call(_context: Any, worker: bytes, step: int, attachments: Any, count: int) -> None:
        try:
            read(worker.decode("utf-8", "replace"), step,
                 [(one.type.decode("utf-8", "replace"), ctypes.string_at(one.data, one.size)) for one in attachments[:count]])
        except Exception:  # pylint: disable=broad-exception-caught  # C++ cannot take it
            traceback.print_exc()
    return call


def _launched() -> bool:
    """Whether mpirun or srun has started this process: then the error of a rank is every rank's."""
    return any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"))
