"""How a worker ends that has not said whether it is done: by an exception, or with the exit code of its process."""

import sys
import threading
import time
from types import TracebackType
from typing import Callable, Dict, Optional, Type

_GRACE = 1.0  # seconds in which a process ends that handles an exception: then its exit code tells
_POLL = 0.05

_exceptions: Dict[Optional[int], str] = {}  # those that have ended a thread, by its number until another has that


class Standing:
    """What a finalizer must know of a client or a trainer; it must not hold that itself."""

    takes_part = False  # it has joined, and has not left
    thread = threading.get_ident()  # that has called it last


def watch() -> None:
    """Notes from now on the exceptions that end the process or one of its threads."""
    main_hook, thread_hook = sys.excepthook, threading.excepthook

    def note_main(kind: Type[BaseException], value: BaseException, trace: Optional[TracebackType]) -> None:
        if not (hasattr(sys, "ps1") or sys.flags.interactive):  # there it ends a line of the user's
            _note(threading.main_thread().ident, kind, value)
        main_hook(kind, value, trace)

    def note_thread(arguments: threading.ExceptHookArgs) -> None:
        thread = threading.get_ident() if arguments.thread is None else arguments.thread.ident
        if arguments.exc_type is not SystemExit:
            _note(thread, arguments.exc_type, arguments.exc_value)
        thread_hook(arguments)

    sys.excepthook, threading.excepthook = note_main, note_thread


def _note(thread: Optional[int], kind: Type[BaseException], value: Optional[BaseException]) -> None:
    _exceptions[thread] = f"{kind.__name__}: {value}" if str(value or "") else kind.__name__


def exception_of(thread: Optional[int]) -> str:
    """Returns the exception that has ended the thread of that number; "" if there was none."""
    return _exceptions.get(thread, "")


def thread_runs(thread: int) -> None:
    """Forgets the exception of an earlier thread that had this one's number."""
    _exceptions.pop(thread, None)


def process_ends() -> bool:
    return not threading.main_thread().is_alive()


def unless_process_ends(then: Callable[[], None]) -> None:
    """Calls `then` a moment later, in another thread, unless the process ends before."""
    def wait() -> None:
        end = time.monotonic() + _GRACE
        while time.monotonic() < end:
            time.sleep(_POLL)
            if process_ends():
                return
        then()

    try:
        threading.Thread(target=wait, name="sluice-leave", daemon=True).start()
    except RuntimeError:
        pass  # the interpreter ends, and starts no thread
