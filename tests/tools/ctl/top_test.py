#!/usr/bin/env python3
"""sluicectl top in a real terminal, which tmux plays."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

PATIENCE = 30  # seconds; ends a test that hangs
WORKER = "tests/testing/process/pushing_worker_program"


def wait_for(what, condition):
    """Returns what the condition returns, once that is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)  # tmux tells no change
    raise AssertionError(f"no {what}")


class Terminal:
    """A shell in tmux."""

    def __init__(self, folder, width, height):
        self.socket = os.path.join(folder, "tmux")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height),
                  "env PS1='ready> ' TERM=screen sh")
        self.wait_until("ready>")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True).stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.text().rstrip("\n").split("\n")

    def wait_until(self, pattern):
        """Returns the text of the screen once it has the pattern."""
        try:
            return wait_for(pattern, lambda: (text := self.text()) and re.search(pattern, text, re.M) and text)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.text()}") from None

    def shows_alternate_screen(self):
        return self.tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def close(self):
        self.tmux("kill-server")


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed; tools/setup installs it")
class TopTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="top.", dir="/tmp")  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.processes = []
        self.addCleanup(self.end_processes)
        self.server, self.address = self.start_server()
        for i in range(3):
            self.start([WORKER, f"--server={self.address}", "--steps=1000000", "--gradient=0", "--elements=16",
                        "--batch-time=0.02", f"--name=worker-{i}"])
        self.terminal = Terminal(folder.name, 150, 24)
        self.addCleanup(self.terminal.close)

    def start(self, words, **more):
        process = subprocess.Popen(words, text=True, **more)  # pylint: disable=consider-using-with
        self.processes.append(process)
        return process

    def start_server(self):
        server = self.start(["server/sluice_server", "--listen=127.0.0.1:0", "--workers=3"], stderr=subprocess.PIPE)
        for line in server.stderr:
            found = re.search(r"listening on (\S+)", line)
            if found:
                return server, found.group(1)
        raise AssertionError("the server does not listen")

    def end_processes(self):
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()

    def begin(self, *flags):
        self.terminal.type("stty -g >before; clear", "Enter")
        program = " ".join(["exec tools/ctl/sluicectl top", f"--server={self.address}", "--interval=0.1", *flags])
        self.terminal.type(f"sh -c 'echo $$ >pid; {program}'; echo code=$?", "Enter")
        self.terminal.wait_until(r"^workers 1-3 of 3 ")
        self.assertTrue(self.terminal.shows_alternate_screen())

    def expect_restored(self, code):
        """The shell goes on in the terminal as it was."""
        text = self.terminal.wait_until(f"^code={code}")
        self.assertFalse(self.terminal.shows_alternate_screen())
        self.terminal.type("stty -g | cmp - before && echo the same", "Enter")
        self.terminal.wait_until("^the same")
        return text

    def pid(self):
        with open("pid", encoding="utf-8") as file:
            return int(file.read())

    def test_shows_workers_sorts_filters_and_gives_the_terminal_back(self):
        self.begin()
        screen = self.terminal.wait_until(r"speed +[0-9.]+ steps/s")
        self.assertRegex(screen, r"^job \w+ at 127.0.0.1:\d+: TRAINING, step \d+,")
        self.assertRegex(screen, r"(?m)^worker-1 +present ")
        self.assertRegex(screen, r"(?m)^workers 1-3 of 3 by lag ")
        self.terminal.type("<", "<", "<")  # step, name; then the last
        self.terminal.wait_until(r"^workers 1-3 of 3 by waits ")
        self.terminal.type("/", "er-2", "Enter")
        screen = self.terminal.wait_until(r'^workers 1-1 of 1 by waits with "er-2"')
        self.assertNotRegex(screen, r"(?m)^worker-[01] ")
        self.terminal.type("h")
        self.terminal.wait_until("^Keys of sluicectl top")
        self.terminal.type("x")
        self.terminal.type("q")
        self.expect_restored(0)

    def test_follows_the_size_of_the_terminal(self):
        self.begin()
        for width, height in ((40, 9), (200, 50), (10, 3)):
            self.terminal.tmux("resize-window", "-x", str(width), "-y", str(height))
            last = "workers 1-1 of 3 by lag"[:width] if height < 9 else "workers 1-"
            lines = wait_for("screen of the new size", lambda: (
                lines := self.terminal.lines()) and len(lines) == height and lines[-1].startswith(last) and lines)
            self.assertTrue(all(len(line) <= width for line in lines), lines)
        self.terminal.type("q")
        self.terminal.tmux("resize-window", "-x", "100", "-y", "24")
        self.expect_restored(0)

    def test_a_signal_ends_it_and_gives_the_terminal_back(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 0), (signal.SIGHUP, 129)):
            self.begin()
            os.kill(self.pid(), number)
            self.expect_restored(code)

    def test_ctrl_c_quits(self):
        self.begin()
        self.terminal.type("C-c")
        self.expect_restored(0)

    def test_a_lost_server_is_said_and_ends_it_after_the_patience(self):
        self.begin("--connect-timeout=5")
        self.server.kill()
        text = self.expect_restored(3)
        self.assertRegex(text, r"(?m)^sluicectl: lost the server at 127.0.0.1:\d+: ")

    def test_says_how_long_a_server_that_hangs_has_not_answered(self):
        self.begin()
        self.server.send_signal(signal.SIGSTOP)
        self.terminal.wait_until(r"^OLD +no answer for \d+ s; waiting")
        self.server.send_signal(signal.SIGCONT)
        wait_for("new sample", lambda: "OLD " not in self.terminal.text())
        self.terminal.type("q")
        self.expect_restored(0)

    def test_an_unknown_terminal_is_named(self):
        self.terminal.type(f"TERM=nothing tools/ctl/sluicectl top --server={self.address}; echo code=$?", "Enter")
        text = self.terminal.wait_until("^code=2")
        self.assertIn("the kind of the terminal is nothing, expected one that this machine knows", text)

    def test_without_a_terminal_it_names_other_commands(self):
        ended = subprocess.run(["tools/ctl/sluicectl", "top", f"--server={self.address}"], check=False,
                               capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertEqual(ended.stderr,
                         "sluicectl: top found no terminal, and needs one; use status, workers or watch instead\n")


if __name__ == "__main__":
    recorded_tests.main()
