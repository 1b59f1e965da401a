"""A module whose parameters and computation are on a model server, which serve_module() makes, or ServeModule() in C++."""

import contextlib
import ctypes
import threading
import warnings
import weakref
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

import torch

from sluice import _ending, _library, plain_data
from sluice._library import library
from sluice.client import DISPOSITIONS, Round, error_of, loss_of, number_of
from sluice.errors import RemoteError
from sluice.job import Job, check_not_forked, forked
from sluice.module_tensors import SentTensors, all_received, received


class _Forward(torch.autograd.Function):  # pylint: disable=abstract-method
    """A forward on the server whose backward is there, too."""

    @staticmethod
    def forward(ctx: Any, remote: "RemoteModule", wanted: List[bool], _anchor: torch.Tensor,  # type: ignore[override]
                *inputs: torch.Tensor) -> torch.Tensor:
        output, has_gradient, ctx.call = remote._run(inputs, wanted, True)
        ctx.remote, ctx.wanted, ctx.devices = remote, wanted, [one.device for one in inputs]
        if not has_gradient:
            ctx.mark_non_differentiable(output)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        if torch.is_grad_enabled():
            raise RuntimeError("backward with create_graph through a remote module: it has no gradients of second order; leave "
                               "create_graph out")
        found = ctx.remote._backward(ctx.call, gradient)
        if len(found) != sum(ctx.wanted):
            raise RemoteError(f"the model server gave {len(found)} gradients of inputs, expected {sum(ctx.wanted)}; do trainer and "
                              "model server run the same version?")
        rest = iter(found)
        return (None, None, None, *(next(rest).to(device) if wanted else None for wanted, device in zip(ctx.wanted, ctx.devices)))


class RemoteModule(torch.nn.Module):
    """Forward and backward on a model server: this process holds no parameters.

        model = sluice.RemoteModule(job)
        loss = loss_function(model(images), labels)
        loss.backward()
        model.step(samples=len(images), loss=loss)

    It is a module without parameters, so several may stand in a row, each on a server of its own, with modules of this process
    between them. train() and eval() travel with each forward. Each output has one backward, before step(); under
    torch.no_grad() nothing is kept on the server. Outputs are on the CPU.

    The parameters of this trainer stay as they are from its forward to its step(): other trainers' steps do not change them.

    Used by one thread at a time; autograd may run backward on others.

    Attributes:
      last: the Round of the last step(); None before the first.
      index, workers: this trainer's place among the workers of the job, which decides which data it takes.
      batches_before: those of earlier processes in this place, which a process that was started again skips.
      earlier_launches: none: a model server does not tell what a job has trained that goes on after its end.
    """

    def __init__(self, job: Job, address: Optional[str] = None) -> None:
        """Waits for the model server up to --connect-timeout, and enters under the job's worker name.

        Args:
          job: what sluice.start() has returned.
          address: of the model server, host:port or unix:/path; by default that of --sluice-server.

        Raises:
          ServerGoneError: there is none at that address.
          RemoteError: the model server refuses this trainer, such as one without the job's token.
        """
        super().__init__()
        check_not_forked()
        handle = ctypes.c_void_p()
        _library.check(library.sluice_module_create(job._handle, None if address is None else address.encode(),
                                                    ctypes.byref(handle)))
        self.last: Optional[Round] = None
        self._calls = 0
        self._anchor = [torch.zeros(0, requires_grad=True)]  # so that autograd records; no parameter of this module
        self._lock = threading.RLock()
        self._standing = _ending.Standing()
        self._call = _library.Call(handle, library.sluice_module_wait, _library.ModuleReply())
        self._finalizer = weakref.finalize(self, _close, handle, self._call.under_way, self._standing, job)
        with self._lock:
            self._note_thread()
            self._call.begin(library.sluice_module_enter)
            self._end()
        self._standing.takes_part = True
        place = library.sluice_module_client_place(handle)
        self.index, self.workers, self.batches_before = int(place.index), int(place.workers), int(place.pushes_before)
        self.earlier_launches: List[List[int]] = []

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Computes the module's output on the server.

        Raises:
          RemoteError: the module does not take these tensors, or the server is gone.
          ValueError: a tensor cannot be sent.
        """
        if not torch.is_grad_enabled():
            return self._run(inputs, [False] * len(inputs), False)[0]
        wanted = [isinstance(one, torch.Tensor) and one.requires_grad for one in inputs]
        output: torch.Tensor = _Forward.apply(self, wanted, self._anchor[0], *inputs)
        return output

    def step(self, *, samples: int = 1, loss: Any = None) -> Round:
        """Pushes this trainer's gradient, waits until the job's mode lets it go on, and takes the new parameters, there.

        If a backward has failed since the last step, raises its error, and pushes nothing. The arguments are those of
        DistributedOptimizer.step(). The gradient is 0 afterwards, so that a loop needs no zero_grad().
        """
        with self._lock:
            self._begin_step(samples, loss)
            return self._end_step()

    @staticmethod
    def step_all(parts: Sequence["RemoteModule"], *, samples: int = 1, loss: Any = None) -> List[Round]:
        """Calls step() of all parts of one model at the same time, and returns their rounds. When all have ended, raises the
        first error, if there is one. Each part has a gate of its own: in the modes that drop gradients, one part's may count
        and another's not."""
        begun: List[RemoteModule] = []
        rounds: List[Round] = []
        errors: List[BaseException] = []
        with contextlib.ExitStack() as locks:
            for part in parts:
                locks.enter_context(part._lock)
            try:
                for part in parts:
                    part._begin_step(samples, loss)
                    begun.append(part)
            except RemoteError as error:
                errors.append(error)
            for part in begun:
                try:
                    rounds.append(part._end_step())
                except RemoteError as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        return rounds

    def zero_grad(self, set_to_none: bool = True) -> None:  # pylint: disable=unused-argument
        """Sets this trainer's gradient to 0, and gives up the outputs whose backward did not come."""
        self._ask(_library.MODULE_DROP_GRADIENT)

    def gradients(self, *names: str) -> Dict[str, torch.Tensor]:
        """Returns this trainer's gradient, by the names of the module's parameters: what its backward() has added up since its
        last step(). Without names, of all that are trained: at most 64 MiB at once. Give each name once."""
        words = (ctypes.c_char_p * max(1, len(names)))(*[name.encode() for name in names])
        with self._lock:
            reply = self._ask(_library.MODULE_GRADIENTS, names=words, name_count=len(names))
            return {reply.tensors[place].name.decode(): received(reply.tensors[place]) for place in range(reply.tensor_count)}

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the module that the server offers (serve_module(methods=…)), and returns what that returns.

        Arguments and results are tensors, numbers, texts, bytes, and lists, tuples and dictionaries of those; with a server in
        C++, tensors alone. Tensors come back without gradients, on the CPU. All of one side have at most 64 MiB together, the
        texts and numbers in them included.
        """
        plain, tensors = plain_data.parts_of(arguments)
        if len(tensors) == len(arguments) and all(isinstance(one, torch.Tensor) for one in arguments):
            plain = ""
        sent = SentTensors(tensors)
        with self._lock:
            reply = self._ask(_library.MODULE_CALL, sent, method=method.encode(), plain=plain.encode(), training=int(self.training))
            values = all_received(reply.tensors, reply.tensor_count)
            text = (reply.plain or b"").decode()
        if text:
            return plain_data.of_parts(text, values)
        return None if not values else values[0] if len(values) == 1 else tuple(values)

    def leave(self) -> None:
        """Ends this trainer's part: the others no longer wait for it. A process that ends with exit code 0 does so itself, and so
        does one that goes on without this object for a second. With another exit code, the trainer is lost."""
        self._leave(False)

    def await_end(self) -> None:
        """Does the same as leave(), and waits until all workers have left. After that, a forward under torch.no_grad() computes
        with the final parameters."""
        self._leave(True)

    def _leave(self, stays: bool) -> None:
        self._ask(_library.MODULE_LEAVE, stay=int(stays))
        self._standing.takes_part = False

    def _run(self, inputs: Sequence[torch.Tensor], wanted: Sequence[bool], keeps: bool) -> Tuple[torch.Tensor, bool, int]:
        """Returns the output, whether it has a gradient, and the number for its backward."""
        with self._lock:
            self._calls += 1
            number = self._calls
            reply = self._ask(_library.MODULE_FORWARD, SentTensors(inputs, wanted), call=number, training=int(self.training),
                              keep=int(keeps))
            output = reply.tensors[0]
            return received(output), bool(output.requires_grad), number

    def _backward(self, number: int, gradient: torch.Tensor) -> List[torch.Tensor]:
        with self._lock:
            reply = self._ask(_library.MODULE_BACKWARD, SentTensors([gradient]), call=number)
            return all_received(reply.tensors, reply.tensor_count)

    def _begin_step(self, samples: int, loss: Any) -> None:
        value = loss_of(loss)
        number = None if value is None else ctypes.pointer(ctypes.c_float(value))
        self._begin(_library.MODULE_STEP, None, samples=number_of(samples), loss=number)

    def _end_step(self) -> Round:
        round_ = self._end().round
        self.last = Round(round_.step, DISPOSITIONS[round_.disposition], round_.staleness)
        return self.last

    def _ask(self, kind: int, sent: Optional[SentTensors] = None, **fields: Any) -> _library.ModuleReply:
        """What the result shows is valid until the next call."""
        with self._lock:
            self._begin(kind, sent, **fields)
            return self._end()

    def _begin(self, kind: int, sent: Optional[SentTensors], **fields: Any) -> None:
        check_not_forked()
        if self._call.has_begun():  # Ctrl-C has interrupted it
            self._end()
        self._note_thread()
        request = _library.ModuleRequest(kind=kind, **fields)
        if sent is not None:
            request.tensors, request.tensor_count = sent.array, sent.count
        self._call.begin(library.sluice_module_ask, ctypes.byref(request))  # which copies all

    def _end(self) -> _library.ModuleReply:
        code = self._call.wait()
        error = None if code == _library.OK else error_of(code)
        self._call.under_way[0] = False
        if error is not None:
            raise error
        reply: _library.ModuleReply = self._call.result  # type: ignore[assignment]
        return reply

    def _note_thread(self) -> None:
        self._standing.thread = threading.get_ident()
        _ending.thread_runs(self._standing.thread)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """PyTorch calls it for state_dict(), also of a module that has this one."""
        warnings.warn(f"state_dict() has nothing of the RemoteModule {prefix[:-1]!r}: its parameters are on the parameter server, which "
                      "saves them with --checkpoint-dir; sluice.load_checkpoint() reads them")
        super()._save_to_state_dict(destination, prefix, keep_vars)  # type: ignore[no-untyped-call]

    def __deepcopy__(self, _memo: Any) -> NoReturn:
        raise TypeError("a RemoteModule is a connection to a model server, and cannot be copied")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a RemoteModule is a connection to a model server, and cannot be pickled or saved; its parameters are on the "
                        "parameter server: see --checkpoint-dir and sluice.load_checkpoint()")


def _close(handle: ctypes.c_void_p, waits: List[bool], standing: _ending.Standing, job: Job) -> None:
    """A trainer that an exception has ended is lost. Another one that is dropped may be that of a program which is done, or of
    one that ends with an error. So it leaves only if the process goes on. If that ends, the library leaves if the exit code is 0."""
    if forked() or waits[0]:
        return  # what Ctrl-C has interrupted may wait for others for long: the process ends without it, and the server notices
    if not standing.takes_part or _ending.exception_of(standing.thread):
        library.sluice_module_free(handle)
    elif not _ending.process_ends():
        _ending.unless_process_ends(lambda: _leave(handle, job))


def _leave(handle: ctypes.c_void_p, _job: Job) -> None:
    request = _library.ModuleRequest(kind=_library.MODULE_LEAVE)
    if library.sluice_module_ask(handle, ctypes.byref(request)) == _library.OK:
        library.sluice_module_wait(handle, _library.FOREVER, None)
    library.sluice_module_free(handle)
