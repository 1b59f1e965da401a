"""Ports for programs that a test starts."""

import random
import socket

RESERVED = []


def free_port():
    """A TCP port of 127.0.0.1 on which nobody listens.

    The system does not give it to outgoing connections, whose ports begin at 32768. No other test gets it as long as this
    process lives: FreePort() in process/launch.h takes the same names.
    """
    while True:
        port = random.randrange(10000, 30000)
        name, listener = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            name.bind(f"\0sluice-test-port-{port}")
            with listener:
                listener.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        RESERVED.append(name)
        return port
