#!/usr/bin/env python3
"""Prints what an event file of TensorBoard has: a reader that shares no code with the writer.

The record format is TFRecord's. The checksum is computed bit by bit, as RFC 3720 defines it.
"""

import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            mixed = (crc ^ (byte >> bit)) & 1
            crc = (crc >> 1) ^ (0x82F63B78 if mixed else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,), (length_crc,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        assert length_crc == masked(data[:8]), "the checksum of a length is wrong"
        body, (body_crc,) = data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])
        assert body_crc == masked(body), "the checksum of an event is wrong"
        yield body
        data = data[16 + length:]


def varint(data):
    value = shift = used = 0
    while True:
        value |= (data[used] & 0x7F) << shift
        shift += 7
        used += 1
        if data[used - 1] < 0x80:
            return value, data[used:]


def fields(data):
    """The number and the value of each field of a protobuf message."""
    while data:
        key, data = varint(data)
        kind = key & 7
        if kind == 0:
            value, data = varint(data)
        elif kind == 1:
            (value,), data = struct.unpack("<d", data[:8]), data[8:]
        elif kind == 2:
            length, data = varint(data)
            value, data = data[:length], data[length:]
        else:
            assert kind == 5, kind
            (value,), data = struct.unpack("<f", data[:4]), data[4:]
        yield key >> 3, value


def main():
    assert crc32c(b"123456789") == 0xE3069283
    with open(sys.argv[1], "rb") as file:
        for record in records(file.read()):
            event = dict(fields(record))
            where = f"{event[1]:.2f} step {event.get(2, 0)}:"
            if 3 in event:
                print(where, event[3].decode())
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                print(where, value[1].decode(), value.get(2, 0.0))


if __name__ == "__main__":
    main()
