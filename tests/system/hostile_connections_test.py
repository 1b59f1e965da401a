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
import unittest

from http2_peer import (
    Peer,
    bomb,
)

HEARTBEAT = "/sluice.v1.ParameterServer/Heartbeat"
STATE = "/sluice.v1.Inspector/GetServerState"
EMPTY = bytes(5)  # a message without fields
PLENTY = 100  # MB of memory; a server takes 20 at its start
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
        self.process = subprocess.Popen(
            [PROGRAM, f"--listen={listen}", "--workers=1", *flags],
            stderr=self.log,
            stdout=subprocess.DEVNULL,
            preexec_fn=limit_open_files,
        )
        self.address = self.await_line(r"listening on ([^ ,\n]+)")

    def lines(self):
        self.log.seek(0)
        return self.log.read().decode()

    def await_line(self, pattern):
        while self.process.poll() is None:
            found = re.search(pattern, self.lines())
            if found:
                return found.group(1)
        raise AssertionError(f"no line with {pattern}:\n{self.lines()}")

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

    def expect_served(self, server, tls=None):
        """Another client is served, and the server has kept its memory."""
        honest = self.greeted(server, tls=tls)
        honest.call(1, STATE, EMPTY)
        self.assertIn(b"grpc-status\x010", honest.answer())
        print(f"{self.id().rsplit('.', 1)[1]}: at most {server.peak()} MB")
        self.assertLess(server.peak(), PLENTY)

    # ---- Messages ----

    def test_a_compressed_bomb_is_refused_before_it_is_unpacked(self):
        for encoding in ("gzip", "deflate"):
            for token in (False, True):
                flags = [f"--token-file={self.token_file()}"] if token else []
                server = self.serve(*flags)
                evil = self.greeted(server)
                evil.call(1, HEARTBEAT, bomb(encoding, 500), [(b"grpc-encoding", encoding.encode())])
                self.assertIn(b"grpc-status\x0212", evil.answer())
                self.expect_served(server)

    def test_a_compressed_bomb_is_refused_over_tls(self):
        server, tls = self.serve_tls()
        evil = self.greeted(server, tls=tls)
        evil.call(1, STATE, bomb("gzip", 500), [(b"grpc-encoding", b"gzip")])
        self.assertIn(b"grpc-status\x0212", evil.answer())
        self.expect_served(server, tls)

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
