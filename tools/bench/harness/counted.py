"""Tells sluice_counted of tools/lib.sh how much of a long measurement is done; that shows it to people."""

import sys


class Counted:
    """So many parts of about the same length."""

    def __init__(self, total=0):
        self.total = total
        self._done = 0

    def line(self, what):
        """The line to print on stderr when one more part is done. `what` it gave, in few words."""
        self._done += 1
        return f"counted {self._done} of {self.total}: {what}"

    def add(self, what):
        print(self.line(what), file=sys.stderr, flush=True)
