"""Decodes chunks as common/encoding/README.md specifies them, with Python's standard library alone.

Written from that page and from nothing else: any language can read what Sluice writes. The standard
library has neither zstd nor XXH3, so stored parts are all it reads of zstd, and checksums it leaves
unread.
"""

import struct

MOST_ELEMENTS = 1 << 18
MOST_RANK = 64
MOST_VARINT = 3
INT8_BLOCK, SIGN_BLOCK = 256, 1024
WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}
MASK = (1 << 64) - 1


class BadChunk(Exception):
    """The payload is not what its ChunkEncoding says."""


class NeedsZstd(Exception):
    """The payload holds a frame."""


def expect(condition, problem):
    if not condition:
        raise BadChunk(problem)


def float_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bits_of(number):
    """Of the float32 nearest to `number`. One operation on two float32 in double precision and then
    this are that operation in float32: a double has more than twice the bits."""
    try:
        return struct.unpack("<I", struct.pack("<f", number))[0]
    except OverflowError:
        return 0x7f800000 if number > 0 else 0xff800000


def rounded(number):
    return float_of(bits_of(number))


# ---- Byte layout and compressor ----


def unpack_parts(payload, parts):
    """The bytes of each part."""
    at, unpacked = 0, []
    for _ in range(parts):
        expect(len(payload) - at >= 4, "ends within a length")
        (head,) = struct.unpack_from("<I", payload, at)
        length = head & 0x7fffffff
        at += 4
        expect(length <= len(payload) - at, "ends within a part")
        if not head >> 31:
            raise NeedsZstd
        unpacked.append(payload[at:at + length])
        at += length
    expect(at == len(payload), "goes on after its parts")
    return unpacked


def unpack(payload, how):
    """What the transform made."""
    width = WIDTHS.get(how["transform"], 1)
    planes = how["byte_layout"] == "planes" and width > 1
    count = how["count"]
    if how["compressor"] == "zstd":
        parts = unpack_parts(payload, width if planes else 1)
        expect(not planes or all(len(part) == count for part in parts), "has a short or long plane")
        payload = b"".join(parts)
    if not planes:
        return payload
    expect(len(payload) == width * count, "has another number of bytes")
    return bytes(payload[plane * count + i] for i in range(count) for plane in range(width))


# ---- Transforms: bytes to the bits of float32 ----


def words(data, code):
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


def expect_size(data, size):
    expect(len(data) == size, f"has {len(data)} bytes instead of {size}")


def blocks(count, size):
    return (count + size - 1) // size


def decode_float32(data, count):
    expect_size(data, 4 * count)
    return words(data, "I")


def from_float16(half):
    sign, exponent, fraction = half >> 15, half >> 10 & 0x1f, half & 0x3ff
    if exponent == 31:
        return sign << 31 | 0x7f800000 | fraction << 13
    if exponent == 0:
        magnitude = fraction * 2.0**-24
    else:
        magnitude = (1024 + fraction) * 2.0**(exponent - 25)
    return sign << 31 | bits_of(magnitude)


def decode_float16(data, count):
    expect_size(data, 2 * count)
    return [from_float16(half) for half in words(data, "H")]


def decode_bfloat16(data, count):
    expect_size(data, 2 * count)
    return [half << 16 for half in words(data, "H")]


def take_scales(data, count, block):
    scales = words(data[:4 * blocks(count, block)], "I")
    expect(all(scale >> 23 & 0xff != 0xff for scale in scales), "has a scale that is not finite")
    return scales, data[4 * len(scales):]


def decode_int8(data, count):
    expect_size(data, 4 * blocks(count, INT8_BLOCK) + count)
    scales, data = take_scales(data, count, INT8_BLOCK)
    return [bits_of(float_of(scales[i // INT8_BLOCK]) * byte)
            for i, byte in enumerate(words(data, "b"))]


def decode_sign(data, count):
    expect_size(data, 4 * blocks(count, SIGN_BLOCK) + blocks(count, 8))
    scales, data = take_scales(data, count, SIGN_BLOCK)
    return [scales[i // SIGN_BLOCK] ^ (data[i // 8] >> i % 8 & 1) << 31 for i in range(count)]


def take_kept(data, how):
    """The values that were kept, and the bytes after them."""
    expect(1 <= how["kept"] <= how["count"], "keeps none or more than there are")
    size = (2 if how["half"] else 4) * how["kept"]
    expect(len(data) >= size, "ends within its values")
    decode = decode_float16 if how["half"] else decode_float32
    return decode(data[:size], how["kept"]), data[size:]


def take_varint(data, at):
    """The number, and where the next one begins."""
    number = 0
    for i, byte in enumerate(data[at:at + MOST_VARINT]):
        number |= (byte & 0x7f) << 7 * i
        if byte < 0x80:
            return number, at + i + 1
    raise BadChunk("has no whole varint")


def decode_top_k(data, how):
    kept, gaps = take_kept(data, how)
    values = [0] * how["count"]
    at = place = 0
    for value in kept:
        gap, at = take_varint(gaps, at)
        place += gap
        expect(place < how["count"], "has a value beyond its end")
        values[place] = value
        place += 1
    expect(at == len(gaps), "goes on after its last place")
    return values


def split_mix(seed, index):
    z = seed + (index + 1) * 0x9e3779b97f4a7c15 & MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def decode_random_k(data, how):
    kept, rest = take_kept(data, how)
    expect(not rest, "goes on after its values")
    values = [0] * how["count"]
    for i, value in enumerate(kept):
        begin = i * how["count"] // how["kept"]
        end = (i + 1) * how["count"] // how["kept"]
        values[begin + split_mix(how["seed"], i) % (end - begin)] = value
    return values


def decode_low_rank(data, how):
    count, columns, rank = how["count"], how["columns"], how["rank"]
    expect(columns >= 1 and count % columns == 0, "is no whole rows")
    expect(1 <= rank <= MOST_RANK, "has no such rank")
    rows = count // columns
    expect((rows + columns) * rank <= count, "is smaller than its narrow matrices")
    expect_size(data, 4 * (rows + columns) * rank)
    narrow = words(data, "f")
    p, q = narrow[:rows * rank], narrow[rows * rank:]
    values = []
    for row in range(rows):
        for column in range(columns):
            total = 0.0
            for k in range(rank):
                total = rounded(total + rounded(p[row * rank + k] * q[column * rank + k]))
            values.append(bits_of(total))
    return values


ELEMENTWISE = {
    "float32": decode_float32,
    "float16": decode_float16,
    "bfloat16": decode_bfloat16,
    "int8": decode_int8,
    "sign": decode_sign,
}
OTHERS = {"top-k": decode_top_k, "random-k": decode_random_k, "low-rank": decode_low_rank}


def decode(payload, how):
    """The elements' bits. Raises BadChunk; NeedsZstd where a part is compressed."""
    expect(1 <= how["count"] <= MOST_ELEMENTS, "has too few or too many elements")
    data = unpack(payload, how)
    if how["transform"] in ELEMENTWISE:
        return ELEMENTWISE[how["transform"]](data, how["count"])
    return OTHERS[how["transform"]](data, how)
