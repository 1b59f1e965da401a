"""The errors that this package raises."""

from typing import Type

_CODES = {
    3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION", 10: "ABORTED", 12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE", 15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}


class RemoteError(RuntimeError):
    """A call to the server failed. Its text is a sentence: what was found, what was expected, what to do next.

    Attributes:
      code: gRPC's name of the kind of error: "UNAVAILABLE" if the server is gone and did not come back.
      reason: a word for programs, such as "LAYOUT_MISMATCH" or "DIVERGED"; "" if the error is the transport's or the
        system's. proto/sluice/v1/parameter_server.proto lists the words.
    """

    def __init__(self, message: str, code: int = 13, reason: str = "") -> None:
        super().__init__(message)
        self.code = _CODES.get(code, "UNKNOWN")
        self.reason = reason


class DivergedError(RemoteError):
    """The server has ended the job because training diverged."""


class ServerGoneError(RemoteError):
    """The server could not be reached, and did not come back within --connect-timeout."""


class ModelError(ValueError):
    """The model or the optimizer cannot be trained with a server as it is, or has changed since it was taken."""


def code_of(error: RemoteError) -> int:
    """Returns gRPC's number of the error."""
    return next((number for number, name in _CODES.items() if name == error.code), 2)


def error_class(code: int) -> Type[RemoteError]:
    return ServerGoneError if code == 14 else RemoteError
