"""The functions of libsluice.so, as sluice.h declares them.

ctypes gives the interpreter's lock (GIL) back around each call, so calls that take time do not stop other threads.
"""

import ctypes
import os
import threading
from typing import Any, Callable, List, Mapping, Optional, Tuple

from sluice.errors import RemoteError, error_class

_NAME = "libsluice.so.0"

PENDING = -1
FOREVER = -1.0  # of sluice_wait()
OK = 0
CANCELLED = 1
NOT_FOUND = 5
RESOURCE_EXHAUSTED = 8
UNAVAILABLE = 14
MODEL_NAMES = 256 * 65 + 1  # bytes
# So often a wait lets Python handle signals, such as Ctrl-C.
SECONDS_BETWEEN_SIGNALS = 0.1

PARAMETER = 0
STATISTIC = 1


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_uint32)), ("dimensions", ctypes.c_size_t),
                ("kind", ctypes.c_int32), ("type", ctypes.c_int32)]


class Model(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(Tensor)), ("count", ctypes.c_size_t)]


class Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Group(ctypes.Structure):
    _fields_ = [("parameters", ctypes.POINTER(ctypes.c_char_p)), ("parameter_count", ctypes.c_size_t),
                ("options", ctypes.POINTER(Option)), ("option_count", ctypes.c_size_t)]


class Optimizer(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("options", ctypes.POINTER(Option)), ("option_count", ctypes.c_size_t),
                ("groups", ctypes.POINTER(Group)), ("group_count", ctypes.c_size_t)]


class Table(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("width", ctypes.c_uint32), ("initializer", ctypes.c_int32),
                ("scale", ctypes.c_float), ("seed", ctypes.c_uint64), ("divisor", ctypes.c_int32),
                ("admit_after", ctypes.c_uint32), ("evict_after", ctypes.c_uint64), ("max_rows", ctypes.c_uint64),
                ("optimizer", ctypes.c_char_p), ("options", ctypes.POINTER(Option)), ("option_count", ctypes.c_size_t)]


class Constant(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_uint64)), ("dimensions", ctypes.c_size_t),
                ("type", ctypes.c_char_p), ("data", ctypes.c_void_p)]


class Round(ctypes.Structure):
    _fields_ = [("step", ctypes.c_uint64), ("disposition", ctypes.c_int32), ("staleness", ctypes.c_uint64)]


class Status(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("workers", ctypes.c_uint32), ("pushes_before", ctypes.c_uint64),
                ("step", ctypes.c_uint64), ("learning_rate_factor", ctypes.c_double), ("complete", ctypes.c_int32),
                ("constants_written", ctypes.c_uint64), ("step_to_take", ctypes.c_int32)]


class RunningMean(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("count", ctypes.c_uint64), ("decay", ctypes.c_float)]


class Followed(ctypes.Structure):
    _fields_ = [("step", ctypes.c_uint64), ("incarnation", ctypes.c_uint64), ("ended", ctypes.c_int32),
                ("constants_written", ctypes.c_uint64)]


class Slot(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("values", ctypes.c_void_p)]


class SavedRows(ctypes.Structure):
    _fields_ = [("ids", ctypes.c_void_p), ("rows", ctypes.c_void_p), ("count", ctypes.c_size_t), ("width", ctypes.c_uint32)]


class ServerTensor(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("offset", ctypes.c_uint64), ("group", ctypes.c_uint32), ("kind_crc32", ctypes.c_uint32)]


class ServerStep(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint64), ("learning_rates", ctypes.POINTER(ctypes.c_double)),
                ("learning_rate_count", ctypes.c_size_t), ("parameters", ctypes.c_void_p), ("gradient", ctypes.c_void_p),
                ("size", ctypes.c_size_t), ("state", ctypes.c_void_p), ("state_size", ctypes.c_size_t)]


OPTIMIZER_ERROR = 1024  # bytes
OpenOptimizer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ServerTensor), ctypes.c_size_t,
                                 ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)
StepOptimizer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ServerStep), ctypes.c_void_p)
CloseOptimizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ServerOptimizer(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("open", OpenOptimizer), ("step", StepOptimizer), ("close", CloseOptimizer)]


class Attachment(ctypes.Structure):
    _fields_ = [("type", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


ReadAttachments = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(Attachment),
                                   ctypes.c_size_t)
SaveModel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                             ctypes.POINTER(ctypes.c_uint64))
LoadModel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
Restore = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class ModuleTensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("element", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("dimensions", ctypes.c_size_t), ("requires_grad", ctypes.c_int32), ("data", ctypes.c_void_p),
                ("size", ctypes.c_size_t)]


(MODULE_FORWARD, MODULE_BACKWARD, MODULE_DROP_GRADIENT, MODULE_STEP, MODULE_LEAVE, MODULE_GRADIENTS, MODULE_CALL) = range(1, 8)


class ModuleRequest(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("call", ctypes.c_uint64), ("training", ctypes.c_int32), ("keep", ctypes.c_int32),
                ("method", ctypes.c_char_p), ("plain", ctypes.c_char_p), ("names", ctypes.POINTER(ctypes.c_char_p)),
                ("name_count", ctypes.c_size_t), ("tensors", ctypes.POINTER(ModuleTensor)), ("tensor_count", ctypes.c_size_t),
                ("samples", ctypes.c_uint32), ("loss", ctypes.POINTER(ctypes.c_float)), ("stay", ctypes.c_int32)]


class ModuleReply(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(ModuleTensor)), ("tensor_count", ctypes.c_size_t), ("plain", ctypes.c_char_p),
                ("round", Round), ("code", ctypes.c_int32), ("reason", ctypes.c_char_p), ("message", ctypes.c_char_p)]


class ModulePlace(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("workers", ctypes.c_uint32), ("pushes_before", ctypes.c_uint64)]


OpenModule = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ModulePlace),
                              ctypes.POINTER(ModuleReply))
AnswerModule = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ModuleRequest), ctypes.POINTER(ModuleReply))
CloseModule = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ModuleFunctions(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("open", OpenModule), ("answer", AnswerModule), ("close", CloseModule)]


_HANDLE = ctypes.c_void_p
_FUNCTIONS = {
    "sluice_version": (ctypes.c_char_p, []),
    "sluice_error_message": (ctypes.c_char_p, []),
    "sluice_error_reason": (ctypes.c_char_p, []),
    "sluice_report_error": (ctypes.c_int, [ctypes.c_char_p]),
    "sluice_run_server": (ctypes.c_int, [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
    "sluice_set_attachment_reader": (None, [ReadAttachments, ctypes.c_void_p]),
    "sluice_set_server_optimizer": (None, [ctypes.POINTER(ServerOptimizer)]),
    "sluice_start": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_char_p),
                                      ctypes.POINTER(_HANDLE)]),
    "sluice_start_with_all_flags": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_char_p),
                                                     ctypes.POINTER(_HANDLE)]),
    "sluice_is_server": (ctypes.c_int, [_HANDLE]),
    "sluice_serve": (ctypes.c_int, [_HANDLE]),
    "sluice_speaks": (ctypes.c_int, [_HANDLE]),
    "sluice_job_rank": (ctypes.c_int32, [_HANDLE]),
    "sluice_job_size": (ctypes.c_int32, [_HANDLE]),
    "sluice_job_model": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "sluice_model_names": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p]),
    "sluice_hold_job": (ctypes.c_int32, [_HANDLE]),
    "sluice_all_gather": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_double,
                                       ctypes.POINTER(_HANDLE)]),
    "sluice_gathered_data": (ctypes.c_void_p, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(ctypes.c_size_t)]),
    "sluice_gathered_free": (None, [_HANDLE]),
    "sluice_job_free": (None, [_HANDLE]),
    "sluice_buffer_create": (_HANDLE, [ctypes.c_uint64]),
    "sluice_buffer_floats": (ctypes.c_void_p, [_HANDLE]),
    "sluice_buffer_free": (None, [_HANDLE]),
    "sluice_client_create": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Model), ctypes.POINTER(Optimizer),
                                              ctypes.c_void_p, _HANDLE, ctypes.POINTER(_HANDLE)]),
    "sluice_client_free": (None, [_HANDLE]),
    "sluice_set_failure": (None, [_HANDLE, ctypes.c_char_p]),
    "sluice_set_restore": (ctypes.c_int32, [_HANDLE, Restore, ctypes.c_void_p]),
    "sluice_set_model": (ctypes.c_int32, [_HANDLE, SaveModel, LoadModel, ctypes.c_void_p]),
    "sluice_take_model": (ctypes.c_int32, [_HANDLE]),
    "sluice_keep_running_means": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(RunningMean), ctypes.c_size_t]),
    "sluice_set_running_means": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(RunningMean), ctypes.c_size_t]),
    "sluice_set_options": (ctypes.c_int32, [_HANDLE, ctypes.c_size_t, ctypes.POINTER(Option), ctypes.c_size_t]),
    "sluice_set_clip_norm": (ctypes.c_int32, [_HANDLE, ctypes.c_double]),
    "sluice_join": (ctypes.c_int32, [_HANDLE]),
    "sluice_push": (ctypes.c_int32, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(ctypes.c_float)]),
    "sluice_leave": (ctypes.c_int32, [_HANDLE]),
    "sluice_await_end": (ctypes.c_int32, [_HANDLE]),
    "sluice_report": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_double),
                                       ctypes.c_size_t]),
    "sluice_wait": (ctypes.c_int32, [_HANDLE, ctypes.c_double, ctypes.POINTER(Round)]),
    "sluice_send_early": (ctypes.c_int32, [_HANDLE, ctypes.c_uint64, ctypes.c_uint64]),
    "sluice_pull_slots": (ctypes.c_int32, [_HANDLE]),
    "sluice_slots": (ctypes.c_size_t, [_HANDLE, ctypes.POINTER(Slot), ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64)]),
    "sluice_give_up_early": (ctypes.c_int32, [_HANDLE]),
    "sluice_attach": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
    "sluice_set_tables": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Table), ctypes.c_size_t]),
    "sluice_set_constants": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Constant), ctypes.c_size_t]),
    "sluice_pull_rows": (ctypes.c_int32, [_HANDLE, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "sluice_prefetch_rows": (ctypes.c_int32, [_HANDLE, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]),
    "sluice_set_row_gradients": (ctypes.c_int32, [_HANDLE, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t,
                                                  ctypes.c_void_p]),
    "sluice_connect": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.POINTER(_HANDLE)]),
    "sluice_follower_create": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Model), _HANDLE, ctypes.POINTER(_HANDLE)]),
    "sluice_follower_free": (None, [_HANDLE]),
    "sluice_follower_set_tables": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Table), ctypes.c_size_t]),
    "sluice_follower_set_constants": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(Constant), ctypes.c_size_t]),
    "sluice_follow_rows": (ctypes.c_int32, [_HANDLE, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t,
                                            ctypes.c_void_p]),
    "sluice_follow": (ctypes.c_int32, [_HANDLE, ctypes.c_uint64]),
    "sluice_follower_wait": (ctypes.c_int32, [_HANDLE, ctypes.c_double, ctypes.POINTER(Followed)]),
    "sluice_order": (ctypes.c_int32, [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64,
                                      ctypes.POINTER(ctypes.c_int64)]),
    "sluice_client_status": (Status, [_HANDLE]),
    "sluice_earlier_launches": (ctypes.c_uint64, [_HANDLE, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64]),
    "sluice_job_worker": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "sluice_module_create": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "sluice_module_free": (None, [_HANDLE]),
    "sluice_module_enter": (ctypes.c_int32, [_HANDLE]),
    "sluice_module_ask": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(ModuleRequest)]),
    "sluice_module_wait": (ctypes.c_int32, [_HANDLE, ctypes.c_double, ctypes.POINTER(ModuleReply)]),
    "sluice_module_client_place": (ModulePlace, [_HANDLE]),
    "sluice_module_serve": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32,
                                             ctypes.POINTER(ModuleFunctions), ctypes.POINTER(_HANDLE)]),
    "sluice_module_host_address": (ctypes.c_char_p, [_HANDLE]),
    "sluice_module_host_wait": (ctypes.c_int32, [_HANDLE, ctypes.c_double]),
    "sluice_module_host_free": (None, [_HANDLE]),
    "sluice_checkpoint_open": (ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "sluice_checkpoint_free": (None, [_HANDLE]),
    "sluice_checkpoint_model": (ctypes.POINTER(Model), [_HANDLE]),
    "sluice_checkpoint_read": (ctypes.c_int32, [_HANDLE, ctypes.c_void_p]),
    "sluice_checkpoint_read_constants": (ctypes.c_int32, [_HANDLE, ctypes.POINTER(ctypes.POINTER(Constant)),
                                                          ctypes.POINTER(ctypes.c_size_t)]),
    "sluice_checkpoint_read_table": (ctypes.c_int32, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(SavedRows)]),
}


def _load() -> ctypes.CDLL:
    """Returns the library: that of SLUICE_LIBRARY, the one beside this package, or the system's."""
    chosen = os.environ.get("SLUICE_LIBRARY")
    beside = os.path.join(os.path.dirname(os.path.realpath(__file__)), _NAME)
    path = chosen or (beside if os.path.exists(beside) else _NAME)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"sluice cannot load its library {path}: {error}. Install the package libsluice0, or let "
                          f"SLUICE_LIBRARY name the file {_NAME}") from error
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"{path} has no function {name}: it is of another version than this Python package. "
                              "Install both from the same release") from error
        function.restype = result
        function.argtypes = arguments
    return library


library = _load()


def check(code: int) -> None:
    """Raises the error of a call that has returned `code`, unless that is OK."""
    if code != OK:
        raise last_error(code)


def last_error(code: int) -> RemoteError:
    """Returns the error of the last call of this thread."""
    message: str = library.sluice_error_message().decode("utf-8", "replace")
    reason: str = library.sluice_error_reason().decode("ascii", "replace")
    return error_class(code)(message, code, reason)


class Call:
    """A call of a client or a follower, which one function begins and another one waits for.

    CPython raises KeyboardInterrupt as soon as a function of the library has returned, before its code is assigned. So
    the code is stored by the statement that calls. Ctrl-C may come anywhere: has_begun() then tells whether to go on.

    Attributes:
      result: what the waiting function writes.
      under_way: one bool: something was begun, and its end was not taken. A list, since a finalizer must not hold this
        object. Whoever takes the end sets it to False.
    """

    def __init__(self, handle: ctypes.c_void_p, wait: Callable[..., int], result: ctypes.Structure) -> None:
        self._handle = handle
        self._wait = wait
        self.result = result
        self.under_way = [False]
        self._begun: List[int] = []  # the code of the function that begins, once that has returned
        self._ended: List[int] = []  # the latest code of waiting

    def begin(self, function: Callable[..., int], *arguments: Any) -> None:
        self._begun, self._ended = [], []
        self.under_way[0] = True
        try:
            _store(self._begun, function, self._handle, *arguments)
        except ctypes.ArgumentError:
            self.under_way[0] = False
            raise

    def has_begun(self) -> bool:
        if not self._begun:
            self.under_way[0] = False  # Ctrl-C came before the function was called
        return self.under_way[0]

    def wait(self, meanwhile: Callable[[], None] = lambda: None) -> int:
        """Waits, and lets Python handle signals meanwhile. Returns the call's code, also if it is asked again."""
        if self._begun[0] != OK:
            return self._begun[0]
        while self._ended in ([], [PENDING]):
            _store(self._ended, self._wait, self._handle, SECONDS_BETWEEN_SIGNALS, ctypes.byref(self.result))
            if self._ended == [PENDING]:
                meanwhile()
        return self._ended[0]


class BlockingCall:
    """A call that blocks, in a thread of its own, so that Ctrl-C need not wait for its end."""

    def __init__(self, function: Callable[..., int], *arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self._error: Optional[RemoteError] = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="sluice-call", daemon=True).start()

    def _run(self) -> None:
        code = self._function(*self._arguments)
        self._error = None if code == OK else last_error(code)
        self._ended.set()

    def wait(self) -> None:
        """Returns when it has ended, or raises its error. After Ctrl-C it may be called again."""
        while not self._ended.wait(SECONDS_BETWEEN_SIGNALS):
            pass
        if self._error is not None:
            raise self._error


def _store(codes: List[int], function: Callable[..., int], *arguments: Any) -> None:
    """Makes the code of a function the one element of `codes`; the statement cannot be interrupted in between."""
    codes[:] = map(function, *[[argument] for argument in arguments])


def options_of(values: Mapping[str, float]) -> "Tuple[ctypes.Array[Option], int]":
    """Returns an array of Option, and its length."""
    options = (Option * max(1, len(values)))()
    for option, (name, value) in zip(options, values.items()):
        option.name, option.value = name.encode(), float(value)
    return options, len(values)


__all__ = ["RemoteError", "check", "last_error", "library", "options_of"]
