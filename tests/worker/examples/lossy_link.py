"""A link between a worker and its server that loses answers."""

import os
import socket
import threading
import time


class LossyLink:
    """Forwards connections to the server. The first one loses all answers from the moment when the link has to carry
    more than `silent_after` bytes to the server. cut() ends this connection; later ones lose nothing."""

    def __init__(self, test, server, silent_after):
        self.server = server.split(":", 1)[1]
        self.silent_after = silent_after
        self.silent = False
        path = os.path.join(test.folder, "link")
        self.address = f"unix:{path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.pairs = []
        test.addCleanup(self.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                worker, _ = self.listener.accept()
            except OSError:
                return  # It is closed.
            server = self.connected()
            first = not self.pairs
            self.pairs.append((worker, server))
            threading.Thread(target=self.forward, args=[worker, server, first], daemon=True).start()
            threading.Thread(target=self.answer, args=[server, worker, first], daemon=True).start()

    def connected(self):
        """A connection to the server, which may not listen yet."""
        for _ in range(600):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server)
                return server
            except OSError:
                server.close()
                time.sleep(0.05)
        raise TimeoutError(f"nobody listens at {self.server}")

    def forward(self, worker, server, first):
        carried = 0
        while data := self.receive(worker):
            carried += len(data)
            if first and carried > self.silent_after:
                self.silent = True
            server.sendall(data)
        self.shut(server)

    def answer(self, server, worker, first):
        while data := self.receive(server):
            if not (first and self.silent):
                worker.sendall(data)
        self.shut(worker)

    @staticmethod
    def receive(connection):
        try:
            return connection.recv(1 << 16)
        except OSError:
            return b""

    @staticmethod
    def shut(connection):
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The other side was faster.

    def cut(self):
        for connection in self.pairs[0]:
            self.shut(connection)

    def close(self):
        self.shut(self.listener)
        for pair in self.pairs:
            for connection in pair:
                self.shut(connection)
                connection.close()
        self.listener.close()
