"""What peers that mean harm do with a connection. Each takes a Peer that has greeted the server."""

import struct
import time

from http2_peer import (
    CONTINUATION,
    END_HEADERS,
    HEADERS,
    PATIENCE,
    RST_STREAM,
    field,
    frame,
    request,
)

JOIN_IN_PARTS = "/sluice.v1.ParameterServer/JoinInParts"
HEARTBEAT = "/sluice.v1.ParameterServer/Heartbeat"
PUSH = "/sluice.v1.ParameterServer/PushGradients"
STATE = "/sluice.v1.Inspector/GetServerState"
WATCH = "/grpc.health.v1.Health/Watch"
MESSAGE = 4 << 20  # bytes of the largest message


def reset_calls(peer, path):
    """Begins calls and resets each at once. True if the server closes the connection in time."""
    whole = b"\x83\x86" + b"".join(
        field(name, value, remembered=True)
        for name, value in [
            (b":path", path.encode()),
            (b":authority", b"x"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        ]
    )
    indexed = b"\x83\x86\xc1\xc0\xbf\xbe"
    deadline = time.monotonic() + PATIENCE
    first = 0
    while time.monotonic() < deadline:
        frames = b""
        for i in range(first, first + 500):
            frames += frame(HEADERS, END_HEADERS, 2 * i + 1, indexed if i else whole)
            frames += frame(RST_STREAM, 0, 2 * i + 1, struct.pack(">I", 8))
        if not peer.send(frames):
            return True
        first += 500
    return False


def begin_calls(peer):
    """Begins 20,000 pushes, and ends none."""
    for first in range(0, 20_000, 500):
        calls = range(2 * first + 1, 2 * (first + 500), 2)
        peer.send(b"".join(frame(HEADERS, END_HEADERS, i, request(PUSH)) for i in calls))


def send_metadata(peer):
    """Sends a call with 14 MB of metadata."""
    peer.send(frame(HEADERS, 0, 1, request(HEARTBEAT)))
    for _ in range(900):
        peer.send(frame(CONTINUATION, 0, 1, field(b"x", bytes(16000))))
    peer.send(frame(CONTINUATION, END_HEADERS, 1))


def send_metadata_without_end(peer, most):
    """Sends a call's metadata in frames that are small enough. True if the server closes the connection
    before they have so many bytes."""
    peer.send(frame(HEADERS, 0, 1, request(STATE)))
    part = frame(CONTINUATION, 0, 1, field(b"x", bytes(7000))) * 16
    return not all(peer.send(part) for _ in range(most // len(part)))


class Stall:
    """Calls of a peer whose messages never end."""

    def __init__(self, peer, path, calls):
        self.peer = peer
        self.unfinished = {}
        for stream in range(1, 2 * calls, 2):
            peer.send(frame(HEADERS, END_HEADERS, stream, request(path)))
            self.unfinished[stream] = b"\0" + struct.pack(">I", MESSAGE) + bytes(MESSAGE - 1)

    def pour(self):
        """Sends on each call as much as the server allows now."""
        for stream in self.unfinished:
            if stream not in self.peer.ended:
                self.unfinished[stream] = self.peer.pour(stream, self.unfinished[stream])
        self.peer.settle()
