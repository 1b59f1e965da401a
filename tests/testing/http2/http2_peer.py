"""A client of HTTP/2 that sends any frames, also those that no honest client would send. It shares
nothing with gRPC."""

import socket
import ssl
import struct
import zlib

DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16384  # the largest frame that a server has to take
WINDOW = 65535  # bytes that may be sent before the server allows more
PATIENCE = 30  # seconds; only a test that hangs waits for so long


def frame(kind, flags, stream, payload=b""):
    length = struct.pack(">I", len(payload))[1:]
    return length + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def string(text):
    """A string in HPACK, not compressed."""
    size = len(text)
    if size < 127:
        return bytes([size]) + text
    length = bytes([127])
    rest = size - 127
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + text


def field(name, value, remembered=False):
    """One field of headers. A remembered one has an index from then on."""
    return (b"\x40" if remembered else b"\x00") + string(name) + string(value)


def request(path, extra=()):
    """The headers of a call. The first two are in HTTP/2's own table: POST and http."""
    fields = [(b":path", path.encode()), (b":authority", b"x"), (b"te", b"trailers")]
    fields += [(b"content-type", b"application/grpc"), *extra]
    return b"\x83\x86" + b"".join(field(name, value) for name, value in fields)


def headers(stream, block, flags=0):
    """The frames of a block of headers of any size."""
    parts = [block[i : i + FRAME_BYTES] for i in range(0, len(block), FRAME_BYTES)] or [b""]
    frames = b""
    for i, part in enumerate(parts):
        end = END_HEADERS if i == len(parts) - 1 else 0
        frames += frame(CONTINUATION if i else HEADERS, end | (0 if i else flags), stream, part)
    return frames


def bomb(encoding, megabytes):
    """A compressed message of zeros: a thousandth of what it unpacks to."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(megabytes)) + packer.flush()
    return b"\x01" + struct.pack(">I", len(packed)) + packed


class Peer:
    """One connection. Used by one thread."""

    def __init__(self, address, tls=None, acknowledges=True):
        """`address` is what the server says: host:port, or unix:/path."""
        if address.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(address[len("unix:") :])
        else:
            host, port = address.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), PATIENCE)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)
        self.received = b""
        self.acknowledges = acknowledges
        self.window = {}  # stream: bytes that may be sent on it
        self.first_window = WINDOW  # of each stream
        self.ended = {}  # stream: the trailers, or the error, with which the server has ended it
        self.closed = False

    def greet(self):
        """Sends the beginning of a connection, and waits for the server's settings."""
        self.send(PREFACE + frame(SETTINGS, 0, 0))
        while not self.step_until(SETTINGS):
            pass

    def send(self, data):
        """False if the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except (ssl.SSLError, ConnectionError):
            self.closed = True
        return not self.closed

    def next_frame(self):
        """(kind, flags, stream, payload); None at the end of the connection."""
        while True:
            size = int.from_bytes(self.received[:3], "big") + 9
            if len(self.received) >= 9 and len(self.received) >= size:
                taken, self.received = self.received[:size], self.received[size:]
                return taken[3], taken[4], int.from_bytes(taken[5:9], "big"), taken[9:]
            try:
                more = self.socket.recv(1 << 16)
            except (ssl.SSLError, ConnectionError):
                more = b""
            if not more:
                self.closed = True
                return None
            self.received += more

    def step_until(self, wanted):
        """Handles one frame. True if it is of that kind, or if the connection has ended."""
        found = self.next_frame()
        if found is None:
            return True
        kind, flags, stream, payload = found
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i : i + 6])
                if name == 4:
                    self.widen(value - self.first_window)
            if self.acknowledges:
                self.send(frame(SETTINGS, ACK, 0))
        if kind == WINDOW_UPDATE:
            self.window[stream] = self.left(stream) + int.from_bytes(payload, "big")
        if kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
            self.ended.setdefault(stream, payload)
        self.last = found
        return kind == wanted

    def widen(self, more):
        """The server allows this much more on each stream, those that are open included."""
        self.first_window += more
        for stream in self.window:
            self.window[stream] += more if stream else 0

    def left(self, stream):
        return self.window.get(stream, self.first_window if stream else WINDOW)

    def room(self, stream):
        """Bytes that the next frame may have. A window that the server has narrowed may be negative."""
        return max(0, min(FRAME_BYTES, self.left(0), self.left(stream)))

    def call(self, stream, path, message, extra=()):
        """Begins a call and sends its only message, as fast as the server allows."""
        self.send(frame(HEADERS, END_HEADERS, stream, request(path, extra)))
        while message and not self.closed:
            part = message[: self.room(stream)]
            if not part:
                if self.step_until(HEADERS):
                    self.received = frame(*self.last) + self.received
                    return  # it was answered already
                continue
            message = message[len(part) :]
            self.window[0] = self.left(0) - len(part)
            self.window[stream] = self.left(stream) - len(part)
            self.send(frame(DATA, 0 if message else END_STREAM, stream, part))

    def pour(self, stream, message):
        """Sends as much of the message as the server allows now; returns the rest."""
        while message and not self.closed:
            part = message[: self.room(stream)]
            if not part:
                break
            self.window[0] = self.left(0) - len(part)
            self.window[stream] = self.left(stream) - len(part)
            self.send(frame(DATA, 0, stream, part))
            message = message[len(part) :]
        return message

    def settle(self):
        """Handles what the server has sent by the time it acknowledges our settings again."""
        self.send(frame(SETTINGS, 0, 0))
        while not (self.step_until(SETTINGS) and (self.closed or self.last[1] & ACK)):
            pass

    def answer(self):
        """The trailers of a call, as bytes; b"" if the connection ends."""
        while not self.closed:
            if self.step_until(HEADERS) and not self.closed and b"grpc-status" in self.last[3]:
                return self.last[3]
        return b""

    def await_close(self):
        """Reads until the server closes the connection. Raises TimeoutError if it does not."""
        while self.next_frame() is not None:
            pass

    def close(self):
        self.socket.close()
