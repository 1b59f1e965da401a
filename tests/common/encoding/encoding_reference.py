"""Decodes chunks as common/encoding/FORMAT.md specifies them, with Python's standard library alone.

Written from that page and from nothing else: any language can read what Sluice writes. The standard
library has neither zstd nor XXH3, so stored parts are all it reads of zstd, and checksums it leaves
unread.
"""

import struct

MOST_ELEMENTS = 1 << 18
MOST_RANK = 64
MOST_VARINT = 3
INT8_BLOCK, SIGN_BLOCK = 256, 1024
PDICT_WORDS = 15
PDICT_HEADER = 4 + PDICT_WORDS
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


def from_pdict(frame):
    expect(len(frame) >= PDICT_HEADER, "has no header")
    (size,) = struct.unpack_from("<I", frame)
    dictionary, codes = frame[4:PDICT_HEADER], frame[PDICT_HEADER:]
    expect(len(codes) >= blocks(size, 2), "ends within its codes")
    patches = iter(codes[blocks(size, 2):])
    unpacked = bytearray()
    for i in range(size):
        code = codes[i // 2] >> i % 2 * 4 & 15
        byte = dictionary[code] if code < PDICT_WORDS else next(patches, None)
        expect(byte is not None, "ends within the bytes that have no codes")
        unpacked.append(byte)
    expect(next(patches, None) is None, "goes on after the bytes that have no codes")
    return bytes(unpacked)


def take_part(payload, compressor):
    """The bytes of the first part, and what is after it."""
    expect(len(payload) >= 4, "ends within a length")
    (head,) = struct.unpack_from("<I", payload)
    length = head & 0x7fffffff
    part, rest = payload[4:4 + length], payload[4 + length:]
    expect(length == len(part), "ends within a part")
    if head >> 31:
        return part, rest
    if compressor == "zstd":
        raise NeedsZstd
    unpacked = from_pdict(part)
    expect(length <= len(unpacked), "is longer than what it stands for")
    return unpacked, rest


def take(payload, size, compressor):
    """So many bytes, of a part if there are parts, and what is after them."""
    if compressor == "none":
        found, rest = payload[:size], payload[size:]
    else:
        found, rest = take_part(payload, compressor)
    expect(len(found) == size, "has another number of bytes")
    return found, rest


def take_presence(payload, how):
    """For each value whether it is there, and what is after that."""
    count = how["count"]
    if how["compressor"] == "none":
        expect(payload, "has no map")
        size = 1 + blocks(count, 8) if payload[0] else 1
        found, rest = take(payload, size, "none")
    else:
        found, rest = take_part(payload, how["compressor"])
    if found == b"\0":
        return [True] * count, rest
    expect(found[:1] == b"\1" and len(found) == 1 + blocks(count, 8), "has no map")
    return [bool(found[1 + i // 8] >> i % 8 & 1) for i in range(count)], rest


def unpack(payload, how):
    """What the transform made."""
    width, compressor = WIDTHS.get(how["transform"], 1), how["compressor"]
    if how["byte_layout"] == "plain" or width == 1:
        if compressor == "none":
            return payload
        data, rest = take_part(payload, compressor)
        expect(not rest, "goes on after its part")
        return data
    presence = [True] * how["count"]
    if how["byte_layout"] == "nonzero":
        presence, payload = take_presence(payload, how)
    planes = []
    for _ in range(width):
        plane, payload = take(payload, sum(presence), compressor)
        planes.append(plane)
    expect(not payload, "goes on after its planes")
    values = zip(*planes)
    return b"".join(bytes(next(values)) if there else bytes(width) for there in presence)


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
