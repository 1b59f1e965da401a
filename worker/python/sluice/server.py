"""A server that is started by hand, and steps with an optimizer of the program:

    python3 -m sluice.server FILE.py:FUNCTION --listen=127.0.0.1:7077 --workers=3 …     # or sluice serve FILE.py:FUNCTION …

FUNCTION is what sluice.start(server_optimizer=FUNCTION) takes. The flags are those of sluice_server. FILE.py is imported: put its
training loop below `if __name__ == "__main__":`.
"""

import ctypes
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Sequence

from sluice._library import library
from sluice.job import AttachmentReader, begin_server

if TYPE_CHECKING:
    from sluice.program_optimizer import MakeOptimizer

_BAD_USAGE = 2


def run_server(flags: Sequence[str], *, server_optimizer: Optional["MakeOptimizer"] = None,
               on_attachments: Optional[AttachmentReader] = None) -> int:
    """Serves as the program sluice_server does, until the job is over; then prints its closing table.

    It may be started by hand, or as rank 0 of a launch: mpirun -n 1 python3 -m sluice.server … : -n 3 …. Call it once, from the
    main thread, in place of sluice.start().

    Args:
      flags: of sluice_server, such as "--listen=127.0.0.1:7077".
      server_optimizer, on_attachments: as for sluice.start().

    Returns: the exit code for sys.exit(): 2 if a flag is wrong, which stderr says.
    """
    if isinstance(flags, str):
        raise ValueError(f"flags is {flags!r}, expected a list of flags")
    begin_server(server_optimizer, on_attachments)
    words = ["sluice_server", *flags]
    array = (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words], None)
    code: int = library.sluice_run_server(len(words), array)
    return code


def _function_of(place: str) -> Any:
    """The function at "FILE.py:NAME"; SystemExit with a sentence if there is none."""
    path, _, name = place.rpartition(":")
    if not path.endswith(".py") or not os.path.isfile(path):
        _refuse(f"the first argument is {place!r}, expected FILE.py:FUNCTION with a file that exists")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as of a program
    spec = importlib.util.spec_from_file_location("_served_" + os.path.splitext(os.path.basename(path))[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        _refuse(f"{path} has no function {name!r}; name the one that makes the optimizer of [(name, parameter), …]")
    return function


def _refuse(why: str) -> NoReturn:
    print(f"sluice.server: {why}", file=sys.stderr)
    sys.exit(_BAD_USAGE)


def main() -> None:
    """Serves with the function that the first argument names."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if len(sys.argv) > 1 else sys.stderr)
        sys.exit(0 if len(sys.argv) > 1 else _BAD_USAGE)
    sys.exit(run_server(sys.argv[2:], server_optimizer=_function_of(sys.argv[1])))


if __name__ == "__main__":
    main()
