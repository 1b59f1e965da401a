"""A model server: it computes forward and backward for trainers that hold no parameters (RemoteModule)."""

import contextlib
import copy
import ctypes
import itertools
import logging
import operator
import threading
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from sluice import _library, plain_data
from sluice._library import library
from sluice.client import DISPOSITIONS
from sluice.errors import ModelError, RemoteError, code_of
from sluice.job import Job, check_not_forked
from sluice.module_tensors import SentTensors, all_received
from sluice.optimizer import DistributedOptimizer, check_optimizer

_MOST_KEPT = 64  # forwards whose backward may still come
_MOST_TRAINERS = 2**32 - 1
_MOST_BYTES = 64 << 20  # of the tensors of one reply
_INVALID_ARGUMENT, _INTERNAL, _UNAVAILABLE = 3, 13, 14


def serve_module(job: Job, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, at: str, methods: Sequence[str] = (),
                 max_trainers: int = 64, trainers: Optional[int] = None) -> int:
    """Serves `model` to trainers, which make a RemoteModule of its address. Returns when all have come and have left, or were
    gone for --connect-timeout. Ctrl-C ends it before.

    In the process that serves the job, it also does what job.serve() does: so rank 0 of a launch has the model, and the other
    ranks are trainers. Elsewhere it is a process of its own, beside the trainers' and the server's; so it is with several servers.

    Each trainer becomes a worker of the job, under its own name, with a copy of `model` and `optimizer` of its own, which a
    DistributedOptimizer connects: so the parameters and the optimizer's state are on the parameter server, and this process
    holds for each trainer what a worker holds. `model` and `optimizer` themselves stay as they are.

    Args:
      job: what sluice.start() has returned.
      model: its forward takes tensors, and returns one. copy.deepcopy() must copy it.
      optimizer: of the model's parameters, just made.
      at: where trainers find this process: host:port, or unix:/path. Beyond this machine --sluice-tls-cert, --sluice-tls-key
        and --sluice-tls-ca are needed.
      methods: names of the model's methods that trainers may call (RemoteModule.call()). They work on that trainer's copy, under
        torch.no_grad(). No other attribute can be reached.
      max_trainers: at once, at least 1.
      trainers: that must have come before this returns; by default, and with 0, as many as the job has workers.

    Returns: the exit code for sys.exit(): that of job.serve(), or 0.

    Raises:
      ServerGoneError: it cannot listen there.
      ModelError: the model or the optimizer cannot be served.
      ValueError: another argument is wrong.
    """
    check_not_forked()
    most, awaited = _count_of("max_trainers", max_trainers, 1), _count_of("trainers", 0 if trainers is None else trainers, 0)
    server = _Server(job, model, optimizer, methods)
    host = ctypes.c_void_p()
    try:  # Ctrl-C may come as soon as the host calls the server's functions
        _library.check(library.sluice_module_serve(job._handle, at.encode(), most, awaited, ctypes.byref(server.functions),
                                                   ctypes.byref(host)))
        code = job.serve() if job.is_server else 0
        # Trainers may still evaluate after the job is over.
        while code == 0 and library.sluice_module_host_wait(host, _library.SECONDS_BETWEEN_SIGNALS) == _library.PENDING:
            pass
        return code
    finally:
        server.ends.set()
        library.sluice_module_host_free(host)


def _count_of(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not least <= number <= _MOST_TRAINERS:
        raise ValueError(f"{name} is {value!r}, expected a whole number from {least} to {_MOST_TRAINERS}")
    return number


class _Refused(Exception):
    """A trainer's error."""

    def __init__(self, message: str, code: int = _INVALID_ARGUMENT, reason: str = "BAD_ARGUMENT") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class _Ends(BaseException):
    """This process ends, and waits no longer for the job."""


class _Output(NamedTuple):
    """What backward needs of a forward."""
    inputs: List[torch.Tensor]
    output: torch.Tensor


class _Troubles:
    """What has gone wrong in requests. A trainer can make much go wrong, so the log has the 1st error of a class, the 2nd, the
    4th, the 8th, and so on. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Dict[str, int] = {}  # by the names of classes

    def log(self, level: int, what: str, why: BaseException) -> None:
        kind = type(why).__name__
        with self._lock:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count & (count - 1) == 0:
            logging.getLogger("sluice").log(level, "%s (%s number %d)", what, kind, count, exc_info=why)

    @contextlib.contextmanager
    def of_module(self) -> Iterator[None]:
        """In its block the program's module works on what a trainer has sent."""
        try:
            yield
        except RemoteError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError) as why:
            self.log(logging.WARNING, "the module refuses what a trainer has sent", why)
            raise _Refused(f"the module refuses these tensors: {type(why).__name__}: {why}") from why


class _Trainer:
    """The session of one trainer: a copy of the module, and a worker of the job."""

    def __init__(self, job: Job, model: torch.nn.Module, optimizer: torch.optim.Optimizer, methods: Sequence[str],
                 ends: threading.Event, troubles: _Troubles) -> None:
        self._model = model
        self._methods = methods
        self._ends = ends
        self._troubles = troubles
        self._optimizer = DistributedOptimizer(optimizer, job, model)
        self._device = next(model.parameters()).device
        self._mode: Optional[bool] = None  # of the model, if no method may have changed it
        self._outputs: Dict[int, _Output] = {}  # by the numbers of their calls

    def place(self) -> Tuple[int, int, int]:
        return self._optimizer.index, self._optimizer.workers, self._optimizer.batches_before

    def answer(self, request: _library.ModuleRequest, reply: _library.ModuleReply) -> Any:
        """Writes the reply. Returns what must live as long as that."""
        if request.kind == _library.MODULE_FORWARD:
            return _show(reply, self._forward(request))
        if request.kind == _library.MODULE_BACKWARD:
            return _show(reply, self._backward(request))
        if request.kind == _library.MODULE_GRADIENTS:
            return _show(reply, self._gradients([request.names[place].decode() for place in range(request.name_count)]))
        if request.kind == _library.MODULE_CALL:
            text, values = self._call(request)
            reply.plain = text
            return text, _show(reply, SentTensors(values))
        if request.kind == _library.MODULE_STEP:
            reply.round = self._step(request)
        elif request.kind == _library.MODULE_LEAVE:
            self._leave(bool(request.stay))
        else:
            self._drop()
        return None

    def close(self) -> None:
        """A trainer that has not left is lost."""
        self._outputs.clear()
        client = self._optimizer._client
        client.tell_while_waiting(lambda: None)  # not this object, which has the client
        client.close("its trainer is gone")

    def _forward(self, request: _library.ModuleRequest) -> SentTensors:
        keeps = bool(request.keep)
        if keeps and (len(self._outputs) >= _MOST_KEPT or request.call in self._outputs):
            raise _Refused(f"this trainer has {len(self._outputs)} outputs without backward, at most {_MOST_KEPT} with different numbers "
                           "are kept; call backward(), step() or zero_grad(), or forward() under torch.no_grad()")
        self._set_mode(bool(request.training))
        wanted = [keeps and bool(request.tensors[place].requires_grad) for place in range(request.tensor_count)]
        with self._troubles.of_module(), torch.set_grad_enabled(keeps):
            leaves = [tensor.requires_grad_(wants) for tensor, wants in zip(self._tensors(request), wanted)]
            # A module may change its input in place, which autograd forbids for a leaf.
            output = self._model(*[leaf.clone() if wants else leaf for leaf, wants in zip(leaves, wanted)])
        if not isinstance(output, torch.Tensor):
            raise _Refused(f"the module has returned a {type(output).__name__}, expected one tensor")
        sent = SentTensors([output], [output.requires_grad])
        if output.requires_grad:
            self._outputs[request.call] = _Output(leaves, output)
        return sent

    def _backward(self, request: _library.ModuleRequest) -> SentTensors:
        """If it fails, the library asks to drop the gradient in place of the next step."""
        kept = self._outputs.pop(request.call, None)
        if kept is None:
            raise _Refused(f"there is no output of call {request.call} any more; each has one backward, before step() and zero_grad()")
        with self._troubles.of_module():
            torch.autograd.backward([kept.output], [self._tensors(request)[0].to(kept.output.device)])
        return SentTensors([torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in kept.inputs if leaf.requires_grad])

    def _gradients(self, names: List[str]) -> SentTensors:
        trained = {name: parameter for name, parameter in self._model.named_parameters() if parameter.requires_grad}
        unknown = [name for name in names if name not in trained]
        if unknown:
            raise _Refused(f"the module trains no parameter {unknown[0]!r}, but {', '.join(trained)}")
        chosen = {name: trained[name] for name in names or trained}
        size = sum(one.numel() * one.element_size() for one in chosen.values())
        if size > _MOST_BYTES:
            raise _Refused(f"these gradients have {size} bytes, expected at most {_MOST_BYTES}; name fewer parameters")
        return SentTensors([torch.zeros_like(one) if one.grad is None else one.grad for one in chosen.values()], names=list(chosen))

    def _call(self, request: _library.ModuleRequest) -> Tuple[bytes, List[torch.Tensor]]:
        name = request.method.decode("utf-8", "replace")
        if name not in self._methods:
            offered = ", ".join(self._methods) or "none; see serve_module(methods=…)"
            raise _Refused(f"the model server offers no method {name!r}; it offers {offered}")
        self._set_mode(bool(request.training))
        self._mode = None  # the method may change it
        with self._troubles.of_module(), torch.no_grad():
            tensors = self._tensors(request)
            arguments = plain_data.of_parts(request.plain.decode(), tensors) if request.plain else tensors
            returned = getattr(self._model, name)(*arguments)
        if returned is None:
            return b"", []
        try:
            text, values = plain_data.parts_of(returned)
        except TypeError as why:
            raise _Refused(f"the method {name!r} has returned what cannot be sent: {why}") from why
        if isinstance(returned, torch.Tensor) or (isinstance(returned, tuple) and 1 < len(returned) == len(values) and
                                                  all(isinstance(one, torch.Tensor) for one in returned)):
            text = ""
        return text.encode(), values

    def _step(self, request: _library.ModuleRequest) -> _library.Round:
        self._optimizer._client.tell_while_waiting(self._check_goes_on)
        try:
            self._optimizer.step(samples=request.samples, loss=request.loss[0] if request.loss else None)
        except Exception:
            with contextlib.suppress(Exception):
                self._drop()
            raise
        self._drop()
        last = self._optimizer.last
        if last is None:  # the workers step, and this one has come after others have made that step
            return _library.Round(self._optimizer.first_step, DISPOSITIONS.index("stale"), 0)
        return _library.Round(last.step, DISPOSITIONS.index(last.disposition), last.staleness)

    def _leave(self, stays: bool) -> None:
        self._outputs.clear()
        self._optimizer._client.tell_while_waiting(self._check_goes_on)
        if stays:
            self._optimizer.await_end()
        else:
            self._optimizer.leave()

    def _drop(self) -> None:
        self._outputs.clear()
        self._optimizer.zero_grad()

    def _tensors(self, request: _library.ModuleRequest) -> List[torch.Tensor]:
        return all_received(request.tensors, request.tensor_count, self._device)

    def _set_mode(self, training: bool) -> None:
        if training != self._mode:
            self._model.train(training)
            self._mode = training

    def _check_goes_on(self) -> None:
        if self._ends.is_set():
            raise _Ends()


class _Server:
    """The functions that the library calls, and the sessions of the trainers."""

    def __init__(self, job: Job, model: torch.nn.Module, optimizer: torch.optim.Optimizer, methods: Sequence[str]) -> None:
        if isinstance(methods, str):
            raise ValueError(f"methods is {methods!r}, expected names, such as [{methods!r}]")
        for name in methods:
            if not callable(getattr(model, name, None)):
                raise ValueError(f"{type(model).__name__} has no method {name!r}, which `methods` names")
        if next(model.parameters(), None) is None:
            raise ModelError(f"{type(model).__name__} has no parameters, so there is nothing to train on a server")
        check_optimizer(optimizer, job, model)
        self._job = job
        self._served = (model, optimizer)
        self._copy()  # so that what cannot be copied is told here
        self._methods = tuple(methods)
        self.ends = threading.Event()
        self._troubles = _Troubles()
        self._numbers = itertools.count(1)
        self._trainers: Dict[int, _Trainer] = {}
        self._shown: Dict[int, Any] = {}  # what the last reply of a thread shows
        self.functions = _library.ModuleFunctions(None, _library.OpenModule(self._open), _library.AnswerModule(self._answer),
                                                  _library.CloseModule(self._close))

    def _copy(self) -> Tuple[torch.nn.Module, torch.optim.Optimizer]:
        try:
            model, optimizer = copy.deepcopy(self._served)
        except Exception as why:
            raise ModelError(f"each trainer needs a copy of the model and the optimizer, and copy.deepcopy() fails: {why}") from why
        return model, optimizer

    def _open(self, _context: Any, trainer: bytes, place: Any, reply: Any) -> Optional[int]:
        try:
            handle = ctypes.c_void_p()
            _library.check(library.sluice_job_worker(self._job._handle, trainer, ctypes.byref(handle)))
            job = Job(handle)
            weakref.finalize(job, library.sluice_job_free, handle).atexit = False  # its client has it
            opened = _Trainer(job, *self._copy(), self._methods, self.ends, self._troubles)
            place[0].index, place[0].workers, place[0].pushes_before = opened.place()
        except BaseException as why:  # pylint: disable=broad-exception-caught  # C++ cannot take it
            self._tell(why, reply)
            return None
        number = next(self._numbers)
        self._trainers[number] = opened
        return number

    def _answer(self, number: int, request: Any, reply: Any) -> None:
        try:
            self._shown[threading.get_ident()] = self._trainers[number].answer(request[0], reply[0])
        except BaseException as why:  # pylint: disable=broad-exception-caught
            self._tell(why, reply)

    def _close(self, number: int) -> None:
        try:
            self._trainers.pop(number).close()
            self._shown.pop(threading.get_ident(), None)
        except BaseException:  # pylint: disable=broad-exception-caught
            logging.getLogger("sluice").exception("the end of a trainer's session has failed")

    def _tell(self, why: BaseException, reply: Any) -> None:
        if isinstance(why, _Ends):
            why = _Refused("the model server ends", _UNAVAILABLE, "")
        elif isinstance(why, RemoteError):
            why = _Refused(str(why), code_of(why), why.reason)
        elif isinstance(why, (ValueError, OverflowError)):
            why = _Refused(str(why))
        elif not isinstance(why, _Refused):
            self._troubles.log(logging.ERROR, "a trainer's request has failed", why)
            why = _Refused(f"the model server has failed: {type(why).__name__}: {why}", _INTERNAL, "")
        words = (why.reason.encode(), str(why).replace("\0", " ").encode("utf-8", "replace"))
        reply[0].code, reply[0].reason, reply[0].message = why.code, *words
        self._shown[threading.get_ident()] = words


def _show(reply: _library.ModuleReply, sent: SentTensors) -> SentTensors:
    reply.tensors, reply.tensor_count = sent.array, sent.count
    return sent
