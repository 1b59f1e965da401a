"""Results of runs, each made once and kept in a file, so that a command that was stopped goes on where it was."""

import os
import sys
import threading


class Results:
    """The result of a run is one line of text; its key is the list of its flags. Any thread may call make()."""

    def __init__(self, run, file=None, tell=str):
        """`run` makes the result of a list of flags. `file` has the results of earlier calls, and gets new ones.

        `tell` makes the words that are printed about a new result; None: nothing is printed.
        """
        self._run = run
        self._file = file
        self._tell = tell
        self._lock = threading.Lock()
        self._known = {}
        if file and os.path.exists(file):
            with open(file, encoding="utf-8") as lines:
                self._known = dict(line.rstrip("\n").split("\t", 1) for line in lines if "\t" in line)

    def make(self, flags):
        """Returns the result, made now if it is not known."""
        key = " ".join(flags)
        if key not in self._known:
            self._note(key, self._run(flags))
        return self._known[key]

    def missing(self, runs):
        """Returns how many of these lists of flags have no result yet."""
        return sum(" ".join(flags) not in self._known for flags in runs)

    def _note(self, key, line):
        with self._lock:
            self._known[key] = line
            if self._tell:
                print(self._tell(line), file=sys.stderr, flush=True)
            if self._file:
                with open(self._file, "a", encoding="utf-8") as lines:
                    lines.write(f"{key}\t{line}\n")
