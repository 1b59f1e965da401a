#!/usr/bin/env python3
"""Peers that know HTTP/2 and mean harm. Each is played against a sluice_server of its own, whose
memory is bounded, and which serves others meanwhile and afterwards.

Usage: hostile_connections_test.py SLUICE_SERVER [TEST...]
"""

import os
import re
import resource
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "testing", "http2"))
# pylint: disable=wrong-import-position
from attacks import (  # noqa: E402
    HEARTBEAT,
    JOIN_IN_PARTS,
    PUSH,
    STATE,
    WATCH,
    Stall,
    begin_calls,
    reset_calls,
    send_metadata,
    send_metadata_without_end,
)
from http2_peer import PATIENCE, Peer, bomb  # noqa: E402
from odd_metadata import odd_calls  # noqa: E402

EMPTY = bytes(5)  # a message without fields
HEALTH = "/grpc.health.v1.Health/Check"
PLENTY = 100  # MB of memory; a server takes 20 at its start
FLOOD = 300  # MB; the server judges a connection every now and then, later if the machine is busy
PROGRAM = ""


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_certificates(folder):
    """ca.pem, and the pairs server.pem and worker.pem with their keys."""
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *new, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
    names = {"server": "IP:127.0.0.1", "worker": "URI:sluice:worker"}
    for who, name in names.items():
        with open(os.path.join(folder, "ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={name}\n")
        openssl(folder, "req", *new[:-2], "-subj", f"/CN={who}", "-keyout", f"{who}.key", "-out", "r")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
        openssl(folder, "x509", "-req", "-in", "r", *signed, "-extfile", "ext", "-out", f"{who}.pem")


class Server:
    """A sluice_server that runs until stop()."""

    def __init__(self, *flags, listen="127.0.0.1:0", open_files=None):
        def limit_open_files():
            if open_files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

        self.log = tempfile.TemporaryFile()
        at = [f"--listen={listen}"] if listen else []
        self.process = subprocess.Popen(
            [PROGRAM, *at, "--workers=1", *flags],
            stderr=self.log,
            stdout=subprocess.DEVNULL,
            preexec_fn=limit_open_files,
        )
        self.address = self.await_line(r"listening on ([^ ,\n]+)")

    def lines(self):
        """What it has written. Leaves the offset alone, which is also where it writes next."""
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def await_line(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while True:
            over = self.process.poll() is not None or time.monotonic() > deadline
            found = re.search(pattern, self.lines())
            if found:
                return found.group(1)
            if over:
                raise AssertionError(f"no line with {pattern}:\n{self.lines()}")
            try:
                self.process.wait(0.01)
            except subprocess.TimeoutExpired:
                pass

    def peak(self):
        """The most memory that it has had, in MB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) // 1024

    def stop(self):
        self.process.terminate()
        return self.process.wait()


class HostileConnections(unittest.TestCase):
    def serve(self, *flags, **options):
        server = Server(*flags, **options)
        self.addCleanup(server.log.close)
        self.addCleanup(server.stop)
        return server

    def connect(self, server, **options):
        peer = Peer(server.address, **options)
        self.addCleanup(peer.close)
        return peer

    def greeted(self, server, **options):
        peer = self.connect(server, **options)
        peer.greet()
        return peer

    def expect_served(self, server, tls=None, most=PLENTY):
        """Another client is served, and the server has kept its memory."""
        self.expect_answer(server, self.greeted(server, tls=tls), most)

    def expect_answer(self, server, honest, most=PLENTY):
        honest.call(1, HEALTH, EMPTY)  # which every server of a job answers
        self.assertIn(b"grpc-status\x010", honest.answer())
        print(f"{self.id().rsplit('.', 1)[1]}: at most {server.peak()} MB")
        # Sanitizers keep what was freed, and their own records beside it.
        if "SLUICE_SANITIZED" not in os.environ:
            self.assertLess(server.peak(), most)

    # ---- Messages ----

    def test_a_compressed_bomb_is_refused_before_it_is_unpacked(self):
        for encoding in ("gzip", "deflate"):
            packed = bomb(encoding, 500)  # takes seconds, so before there is a connection
            for token in (False, True):
                flags = [f"--token-file={self.token_file()}"] if token else []
                server = self.serve(*flags)
                evil = self.greeted(server)
                evil.call(1, HEARTBEAT, packed, [(b"grpc-encoding", encoding.encode())])
                self.assertIn(b"grpc-status\x0212", evil.answer())
                self.expect_served(server)

    def test_a_compressed_bomb_is_refused_over_tls(self):
        packed = bomb("gzip", 500)
        server, tls = self.serve_tls()
        evil = self.greeted(server, tls=tls)
        evil.call(1, STATE, packed, [(b"grpc-encoding", b"gzip")])
        self.assertIn(b"grpc-status\x0212", evil.answer())
        self.expect_served(server, tls)

    # ---- Calls ----

    def test_a_flood_of_resets_ends_the_connection(self):
        for path in (WATCH, HEARTBEAT, PUSH, "/no/method"):
            server = self.serve()
            self.assertTrue(reset_calls(self.greeted(server), path), path)
            self.expect_served(server, most=FLOOD)
            server.await_line("(closed a connection from 127.0.0.1: it (has|broke))")

    def test_a_flood_of_resets_ends_the_connection_on_a_unix_socket(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            server = self.serve(listen=f"unix:{folder}/s")
            self.assertTrue(reset_calls(self.greeted(server), WATCH))
            self.expect_served(server, most=FLOOD)
            server.await_line("(closed a connection from a unix socket: it (has|broke))")

    def test_a_flood_of_resets_ends_the_connection_over_tls(self):
        server, tls = self.serve_tls()
        self.assertTrue(reset_calls(self.greeted(server, tls=tls), WATCH))
        self.expect_served(server, tls, most=FLOOD)

    def test_calls_without_end_of_a_client_that_acknowledges_nothing_end_the_connection(self):
        server = self.serve()
        evil = self.greeted(server, acknowledges=False)
        begin_calls(evil)
        evil.await_close()
        self.expect_served(server, most=FLOOD)

    def test_metadata_of_a_client_that_acknowledges_nothing_are_refused(self):
        server = self.serve()
        evil = self.greeted(server, acknowledges=False)
        send_metadata(evil)
        self.assertIn(b"grpc-status\x018", evil.answer())
        self.expect_served(server)

    def test_requests_to_join_that_wait_for_their_turn_take_little(self):
        server = self.serve()
        for _ in range(4):
            stall = Stall(self.greeted(server), JOIN_IN_PARTS, calls=10)
            deadline = time.monotonic() + PATIENCE
            while len(stall.peer.ended) < 8 and time.monotonic() < deadline:
                stall.pour()
            for _ in range(50):  # what the others may send
                stall.pour()
            self.assertEqual(len(stall.peer.ended), 8)
            refusal = stall.peer.ended[min(stall.peer.ended)]
            self.assertIn(b"has 2 requests to join in parts", refusal)
        self.expect_served(server)

    # ---- Metadata ----

    def test_metadata_without_end_end_the_connection(self):
        for server, tls in ((self.serve(), None), self.serve_tls()):
            evil = self.greeted(server, tls=tls)
            evil.settle()  # it has acknowledged the server's settings
            self.assertTrue(send_metadata_without_end(evil, 4 << 30))
            self.expect_served(server, tls, most=1000)
            server.await_line("(closed a connection from 127.0.0.1: it sent)")

    def play_odd_calls(self, server, acknowledges, tls=None):
        """Each odd call, at a method of another kind each time, on a connection that is still open."""
        paths = (STATE, PUSH, WATCH, HEARTBEAT, "/no/method")
        peer = None
        for number, send in enumerate(odd_calls()):
            if peer is None or peer.closed:
                peer = self.greeted(server, tls=tls, acknowledges=acknowledges)
            send(peer, 2 * number + 1, paths[number % len(paths)])
            peer.settle()
        self.expect_served(server, tls)

    def test_no_metadata_end_the_server(self):
        for acknowledges in (True, False):
            self.play_odd_calls(self.serve(), acknowledges)

    def test_no_metadata_end_the_server_on_a_unix_socket(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            self.play_odd_calls(self.serve(listen=f"unix:{folder}/s"), acknowledges=True)

    def test_no_metadata_end_the_server_over_tls(self):
        server, tls = self.serve_tls()
        self.play_odd_calls(server, acknowledges=True, tls=tls)

    def test_no_metadata_end_a_server_that_is_not_the_first(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            servers = f"--servers=unix:{folder}/0,unix:{folder}/1"
            first, second = (
                self.serve(servers, f"--index={i}", listen=None) for i in range(2)
            )
            for server in (first, second):
                self.play_odd_calls(server, acknowledges=True)

    # ---- Connections ----

    def test_more_connections_than_descriptors_do_not_make_the_server_deaf(self):
        for open_files in (1024, 64):
            server = self.serve(open_files=open_files)
            crowd = [self.connect(server) for _ in range(1300)]
            server.await_line("(refused a connection from 127.0.0.1|cannot take a connection)")
            for peer in crowd:
                peer.close()
            self.expect_served_soon(server)

    def expect_served_soon(self, server):
        """As the server learns of the crowd's end, it has room again."""
        honest = self.greeted(server)
        while honest.closed:
            honest = self.greeted(server)
        self.expect_answer(server, honest)

    def test_an_address_has_no_more_connections_than_it_may(self):
        server = self.serve("--max-connections-per-address=3")
        held = [self.greeted(server) for _ in range(3)]
        self.connect(server).await_close()
        for peer in held:
            peer.call(1, STATE, EMPTY)
            self.assertIn(b"grpc-status\x010", peer.answer())
        held[0].close()
        self.expect_served_soon(server)

    def test_a_connection_that_begins_no_call_is_closed(self):
        server = self.serve("--handshake-timeout=3")
        silent = self.connect(server)
        greeted = self.greeted(server)
        silent.await_close()
        greeted.await_close()
        self.expect_served(server)

    def test_a_hard_limit_that_is_too_low_for_the_workers_is_told(self):
        server = self.serve("--max-workers=1000", open_files=1024)
        server.await_line("(--max-workers=1000, but only 384 connections are possible)")

    # ---- What the tests share ----

    def token_file(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "token")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("secret-of-this-job\n")
        return path

    def serve_tls(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        make_certificates(folder.name)
        at = lambda name: os.path.join(folder.name, name)
        server = self.serve(
            f"--tls-cert={at('server.pem')}",
            f"--tls-key={at('server.key')}",
            f"--tls-ca={at('ca.pem')}",
        )
        tls = ssl.create_default_context(cafile=at("ca.pem"))
        tls.check_hostname = False
        tls.load_cert_chain(at("worker.pem"), at("worker.key"))
        tls.set_alpn_protocols(["h2"])
        return server, tls


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    unittest.main()
