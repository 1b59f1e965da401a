"""What the programs of these tests say, and which errors they expect."""

import os


def say(*words):
    """Prints a line at once, and whole: ranks share the terminal."""
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def expect(kind, text, call):
    """Calls a function that must raise an error of that class with that text. Returns the error."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__}")
