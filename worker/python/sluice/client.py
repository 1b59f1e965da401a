"""The library's client of a worker, as Python calls it."""

import ctypes
import operator
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import torch

from sluice import _ending, _library, memory
from sluice._library import library
from sluice.constants import Constants
from sluice.errors import DivergedError, RemoteError
from sluice.held_model import HeldModel
from sluice.job import Job, check_not_forked, forked
from sluice.layouts import Layout
from sluice.model import FlatModel
from sluice.server_optimizers import ServerOptimizer

MOST_SAMPLES = 2**32 - 1
DISPOSITIONS = ("accepted", "applied", "stale", "duplicate", "skipped")
_LEFT_BEHIND: List[Tuple[Any, ...]] = []  # clients that Ctrl-C has interrupted, with the memory that they still write


@dataclass(frozen=True)
class Round:
    """The report on a step().

    Attributes:
      step: the step of the parameters that the model holds now; the server counts steps.
      disposition: the server's answer to the gradient: "accepted" (it counts), "applied" (it counts, and completed a
        step), "stale" (it was too old, and was dropped), "skipped" (it was not finite) or "duplicate".
      staleness: how many steps the server had made since the parameters of this gradient.
    """

    step: int
    disposition: str
    staleness: int


class Client:
    """The library's client: it calls, and waits so that Python can handle signals."""

    def __init__(self, job: Job, of_model: ctypes.c_void_p, flat: FlatModel, constants: Constants, chosen: ServerOptimizer,
                 held: Optional[HeldModel], steps_before: int) -> None:
        """`steps_before` are those of the job that the server's model does not count."""
        self.left = self.away = False
        self._steps_before = steps_before
        name, options, groups = chosen
        self._standing = _ending.Standing()
        self._flat = flat  # its memory must outlive the client
        self._job = job
        array, count = _library.options_of(options)
        group_array = (_library.Group * max(1, len(groups)))()
        for group, (names, own) in zip(group_array, groups.items()):
            group.parameters = (ctypes.c_char_p * max(1, len(names)))(*[word.encode() for word in names])
            group.parameter_count = len(names)
            group.options, group.option_count = _library.options_of(own)
        optimizer = _library.Optimizer(name.encode(), array, count, group_array, len(groups))
        model = flat.description()
        handle = ctypes.c_void_p()
        _library.check(library.sluice_client_create(of_model, ctypes.byref(model), ctypes.byref(optimizer),
                                                    flat.address, flat.buffer, ctypes.byref(handle)))
        self.handle = handle
        self.pulling = False  # a call has written the parameters, and they were not taken since
        self._pulls = self._leaves = self._joins = False  # what the call under way does
        self._call = _library.Call(handle, library.sluice_wait, _library.Round())
        # Of the functions that the library calls.
        self._errors: List[BaseException] = [] if held is None else held.errors
        restore = _restore_of(flat, self._errors)
        if flat.has_one_buffer:
            _library.check(library.sluice_set_restore(handle, restore, None))
        if held is not None:
            _library.check(library.sluice_set_model(handle, held.save, held.load, None))
        self._waits = self._call.under_way
        self._meanwhile: Callable[[], None] = lambda: None
        self._rows: List[torch.Tensor] = []  # that a pull writes, and its ids
        self._finalizer = weakref.finalize(self, _close, handle, self._waits, self._standing, flat, job, self._rows, restore,
                                           constants, held)

    def check_takes_part(self) -> None:
        if self.away:
            raise RemoteError("step() was called in the block of away(), where this worker does not take part", 9)
        if self.left:
            raise RemoteError("step() was called after leave(), when this worker no longer takes part", 9)

    def status(self) -> _library.Status:
        status: _library.Status = library.sluice_client_status(self.handle)
        status.step += self._steps_before
        return status

    def earlier_launches(self) -> List[int]:
        numbers = (ctypes.c_uint64 * 0)()
        count = library.sluice_earlier_launches(self.handle, numbers, 0)
        numbers = (ctypes.c_uint64 * count)()
        library.sluice_earlier_launches(self.handle, numbers, count)
        return list(numbers)

    def call(self, function: Callable[..., int], *arguments: Any, pulls: bool = False, leaves: bool = False,
             joins: bool = False) -> Round:
        """Calls a function that begins something, and waits for it. Returns the Round.

        `pulls` says that it writes parameters: `pulling` is set then, unless the call fails; whoever takes them clears it.
        `leaves` says that this worker has left when it has ended, and `joins` that it takes part. Ctrl-C may come anywhere: finish() then does the rest.
        """
        check_not_forked()
        self.finish()
        self._pulls, self._leaves, self._joins = pulls, leaves, joins
        self._standing.thread = threading.get_ident()
        _ending.thread_runs(self._standing.thread)
        self._call.begin(function, *arguments)
        return self._end()

    def finish(self) -> Optional[Round]:
        """Waits for a call that Ctrl-C has interrupted, and returns its Round; None if there is none."""
        if not self._call.has_begun():
            return None
        check_not_forked()
        return self._end()

    def _end(self) -> Round:
        """Nothing is called after `_waits` is cleared: Ctrl-C would come there, and what has ended would be lost."""
        code = self._call.wait(self._meanwhile)
        if code != _library.OK:
            error = error_of(code)
            cause = self._errors[0] if self._errors else None
            self._errors[:] = []
            self._waits[0] = False
            raise error from cause
        result = self._call.result
        round_ = Round(self._steps_before + result.step, DISPOSITIONS[result.disposition], result.staleness)
        self.pulling = self.pulling or self._pulls
        if self._leaves:
            self.left, self._standing.takes_part = True, False
        if self._joins:
            self.left = self.away = False
            self._standing.takes_part = True
        self._waits[0] = False
        return round_

    def join(self, meanwhile: Callable[[], None]) -> None:
        """Calls `meanwhile` again and again while it waits."""
        self._meanwhile = meanwhile
        try:
            self.call(library.sluice_join, joins=True)
        finally:
            self._meanwhile = lambda: None

    def join_again(self) -> None:
        """After leave()."""
        self.call(library.sluice_join, pulls=True, joins=True)

    def push(self, samples: int, loss: Any) -> Round:
        return self.call(library.sluice_push, samples, loss, pulls=True)

    def keep_running_means(self, means: Any, count: int) -> None:
        _library.check(library.sluice_keep_running_means(self.handle, means, count))

    def set_running_means(self, means: Any, count: int) -> None:
        _library.check(library.sluice_set_running_means(self.handle, means, count))

    def set_options(self, group: int, options: Mapping[str, float]) -> None:
        _library.check(library.sluice_set_options(self.handle, group, *_library.options_of(options)))

    def set_clip_norm(self, norm: float) -> None:
        _library.check(library.sluice_set_clip_norm(self.handle, norm))

    def attach(self, kind: str, content: bytes) -> None:
        _library.check(library.sluice_attach(self.handle, kind.encode(), content, len(content)))

    def pull_slots(self) -> Tuple[Dict[str, torch.Tensor], int]:
        """Returns what the server's optimizer remembers, by names, and how many steps it has made. The vectors are valid
        until the next push."""
        self.call(library.sluice_pull_slots)
        steps = ctypes.c_uint64()
        slots = (_library.Slot * library.sluice_slots(self.handle, None, 0, ctypes.byref(steps)))()
        library.sluice_slots(self.handle, slots, len(slots), None)
        return {slot.name.decode(): memory.view_of(slot.values, self._flat.size) for slot in slots}, steps.value

    def set_tables(self, tables: List[_library.Table]) -> None:
        _library.check(library.sluice_set_tables(self.handle, (_library.Table * len(tables))(*tables), len(tables)))

    def pull_rows(self, table: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        self._rows[:] = [ids, rows]
        self.call(library.sluice_pull_rows, table, _ids(ids), ids.numel(),
                  memory.address_of(rows, torch.float32, ids.numel(), *rows.shape[1:]))
        self._rows.clear()

    def prefetch_rows(self, table: int, ids: torch.Tensor) -> None:
        check_not_forked()
        _library.check(library.sluice_prefetch_rows(self.handle, table, _ids(ids), ids.numel()))

    def set_row_gradients(self, table: int, ids: torch.Tensor, gradients: torch.Tensor) -> None:
        address = memory.address_of(gradients, torch.float32, ids.numel(), *gradients.shape[1:])
        _library.check(library.sluice_set_row_gradients(self.handle, table, _ids(ids), ids.numel(), address))

    def leave(self) -> None:
        self.call(library.sluice_leave, leaves=True)

    def tell_while_waiting(self, meanwhile: Callable[[], None]) -> None:
        """Calls `meanwhile` again and again while it waits, from now on. What that raises breaks off the waiting."""
        self._meanwhile = meanwhile

    def close(self, failure: str) -> bool:
        """Frees the client. If it has not left, it counts as one that has failed, for that reason. Returns False, and frees
        nothing, if a call was broken off, which may still wait."""
        if self._waits[0]:
            return False
        if self._finalizer.detach():
            library.sluice_set_failure(self.handle, failure.encode("utf-8", "replace"))
            library.sluice_client_free(self.handle)
        return True


class AwaitedClient(Client):
    """In the place of the client of a process that has come when the others had another layout of the model. It calls
    nothing. The layout's client takes its place once the program has made the changes that the others have made."""

    def __init__(self, job: Job, layout: Layout) -> None:  # pylint: disable=super-init-not-called
        self.left = self.away = self.pulling = False
        self._job = job
        self._layout = layout

    def behind(self) -> str:
        """Returns what has happened, for a message."""
        return (f"the workers of this job have changed what they train ({self._layout.name}), and go on from step {self._layout.step}")

    def status(self) -> _library.Status:
        return _library.Status(index=self._job.rank or 0, workers=self._job.size or 1, step=self._layout.step)

    def earlier_launches(self) -> List[int]:
        return []

    def finish(self) -> Optional[Round]:
        return None

    def pull_slots(self) -> Tuple[Dict[str, torch.Tensor], int]:
        return {}, 0

    def call(self, function: Callable[..., int], *arguments: Any, pulls: bool = False, leaves: bool = False,
             joins: bool = False) -> Round:
        raise RemoteError(self.behind(), 9)

    def leave(self) -> None:
        self.left = True


def loss_of(loss: Any) -> Optional[float]:
    """Returns a loss as a number, or None."""
    if not isinstance(loss, torch.Tensor):
        return None if loss is None else float(loss)
    if loss.numel() != 1:
        raise ValueError(f"loss has {loss.numel()} elements, expected a number or a tensor of one element; give the batch's "
                         "mean, loss.mean()")
    return float(loss.item())


def number_of(samples: Any) -> int:
    """Returns the size of a batch."""
    try:
        number = operator.index(samples)
    except TypeError:
        number = 0
    if not 0 < number <= MOST_SAMPLES:
        raise ValueError(f"samples is {samples!r}, expected a whole number from 1 to {MOST_SAMPLES}: the size of the batch")
    return number


def _ids(ids: torch.Tensor) -> Any:
    return memory.address_of(ids, torch.int64, ids.numel())


def _restore_of(flat: FlatModel, errors: List[BaseException]) -> Any:
    """Returns the function for sluice_set_restore(), which adds to `errors` what goes wrong.

    A thread of the library calls it, and gets the interpreter's lock, since waiting gives that up.
    """
    def restore(_context: Optional[int], _parameters: Optional[int]) -> int:
        try:
            flat.gather_values()
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)  # the library's thread cannot raise it
            return 1
        return 0

    return _library.Restore(restore)


def error_of(code: int) -> RemoteError:
    """Returns the error of the last call of this thread."""
    error = _library.last_error(code)
    if error.reason == "DIVERGED":
        return DivergedError(str(error), code, error.reason)
    return error


def _close(handle: ctypes.c_void_p, waits: List[bool], standing: _ending.Standing, *kept: Any) -> None:
    """`kept` are what the library uses until then: the vectors and the job.

    A client that takes part and is dropped may be that of a program which is done, or of one that handles an exception
    and ends. So it leaves only if the process goes on. If that ends, the library tells the server how.
    """
    if forked():
        return  # it has none of the library's threads
    if waits[0]:
        # A call that Ctrl-C has interrupted may wait for others for long, and writes the vectors when it ends. The
        # process ends without it, and the server notices.
        _LEFT_BEHIND.append(kept)
        return
    failure = _ending.exception_of(standing.thread)
    if not standing.takes_part or failure:
        library.sluice_set_failure(handle, failure.encode("utf-8", "replace"))
        library.sluice_client_free(handle)
        return
    _LEFT_BEHIND.append(kept)
    if not _ending.process_ends():
        _ending.unless_process_ends(lambda: _leave(handle, kept))


def _leave(handle: ctypes.c_void_p, kept: Tuple[Any, ...]) -> None:
    if library.sluice_leave(handle) == _library.OK:
        while library.sluice_wait(handle, _library.FOREVER, None) == _library.PENDING:
            pass
    library.sluice_client_free(handle)
    _LEFT_BEHIND[:] = [others for others in _LEFT_BEHIND if others is not kept]
