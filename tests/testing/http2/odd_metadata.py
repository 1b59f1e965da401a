"""Calls whose metadata no honest client sends: each key that gRPC knows, with values that it does not
expect, as headers and as trailers."""

import itertools

from http2_peer import DATA, END_STREAM, field, frame, headers, request

# The keys of gRPC's metadata_batch.h, what it calls its own notes about a call, and some others.
KEYS = (
    ":authority :method :path :scheme :status content-type te user-agent host grpc-accept-encoding "
    "grpc-encoding grpc-internal-encoding-request grpc-message grpc-status grpc-previous-rpc-attempts "
    "grpc-retry-pushback-ms grpc-server-stats-bin grpc-tags-bin grpc-timeout grpc-trace-bin "
    "grpclb_client_stats lb-cost-bin lb-token endpoint-load-metrics-bin x-endpoint-load-metrics-bin "
    "GrpcStreamNetworkState PeerString GrpcStatusContext GrpcStatusFromWire WaitForReady "
    "grpc-status-details-bin authorization connection x x-bin"
).split() + [""]

VALUES = [
    b"",
    b"x",
    b"-1",
    b"99999999H",  # a time
    b"18446744073709551616",  # 2^64
    b"gzip",
    b"\0\xff\r\n\x80",
    b"AA=",  # base64 that breaks off
    bytes(65536),
]

EMPTY_MESSAGE = bytes(5)


def as_headers(peer, stream, path, odd):
    """The odd fields are headers of a call with one message."""
    block = headers(stream, request(path) + odd)
    peer.send(block + frame(DATA, END_STREAM, stream, EMPTY_MESSAGE))


def as_trailers(peer, stream, path, odd):
    """The odd fields follow the message."""
    begin = headers(stream, request(path)) + frame(DATA, 0, stream, EMPTY_MESSAGE)
    peer.send(begin + headers(stream, odd, END_STREAM))


def among_too_many(peer, stream, path, odd):
    """The odd fields are headers of a call whose metadata are above the limit."""
    as_headers(peer, stream, path, odd + field(b"y", b"z" * 10_000))


def odd_calls():
    """All calls, each as a function that sends it: (peer, stream, path)."""
    for key, value, times in itertools.product(KEYS, VALUES, (1, 2)):
        odd = field(key.encode(), value) * times
        for way in (as_headers, as_trailers, among_too_many):
            yield lambda peer, stream, path, way=way, odd=odd: way(peer, stream, path, odd)
