"""Encodes chunks as common/encoding/FORMAT.md says that Sluice does, with Python's standard library
alone. The other half of encoding_reference.py: stored parts are all it writes of zstd.
"""

import collections
import math
import struct

from encoding_reference import (INT8_BLOCK, MASK, PDICT_WORDS, SIGN_BLOCK, WIDTHS, blocks, bits_of,
                                float_of, rounded, split_mix)

MOST_SCALE = float_of(0x7c010203)
LEAST_MAGNITUDE, LEAST_NORM = float_of(0x03aa2425), float_of(0x1e3ce508)
LARGEST_FLOAT16, LARGEST_BFLOAT16 = 65504.0, 0x7f7f0000
SIGN_SUMS = 16


def magnitude(bits):
    return bits & 0x7fffffff


def signed(word):
    """A uint32 read as a signed number."""
    return word - (word >> 31 << 32)


# ---- Elementwise ----


def encode_float32(values):
    return struct.pack(f"<{len(values)}I", *values)


def to_float16(bits):
    nearest = struct.pack("<e", min(float_of(magnitude(bits)), LARGEST_FLOAT16))
    return bits >> 31 << 15 | struct.unpack("<H", nearest)[0]


def encode_float16(values):
    return struct.pack(f"<{len(values)}H", *map(to_float16, values))


def to_bfloat16(bits):
    kept = min(magnitude(bits), LARGEST_BFLOAT16)
    return bits >> 31 << 15 | kept + 0x7fff + (kept >> 16 & 1) >> 16


def encode_bfloat16(values):
    return struct.pack(f"<{len(values)}H", *map(to_bfloat16, values))


# ---- Blocks ----


def in_blocks(values, size):
    return [values[begin:begin + size] for begin in range(0, len(values), size)]


def dither(seed, begin, i):
    s = seed + begin & MASK
    x = (s & 0xffffffff ^ s >> 32) + i & 0xffffffff
    x = (x ^ x >> 16) * 0x85ebca6b & 0xffffffff
    x = (x ^ x >> 13) * 0xc2b2ae35 & 0xffffffff
    return (signed(x ^ x >> 16) // 256) * 2.0**-24


def encode_int8_block(block, begin, seed):
    """Its scale and bytes. Rounds at random if there is a seed."""
    largest = float_of(max(map(magnitude, block)))
    if largest < LEAST_MAGNITUDE:
        return 0.0, [0] * len(block)
    factor = rounded(127 / largest)
    quotients = [rounded(float_of(bits) * factor) for bits in block]
    if seed is not None:
        quotients = [rounded(x + dither(seed, begin, i)) for i, x in enumerate(quotients)]
    # Python's round() takes ties to even.
    return min(rounded(largest / 127), MOST_SCALE), [round(max(-127, min(127, x)))
                                                     for x in quotients]


def encode_int8(values, seed=None):
    scales, data = [], []
    for number, block in enumerate(in_blocks(values, INT8_BLOCK)):
        scale, quantized = encode_int8_block(block, number * INT8_BLOCK, seed)
        scales.append(scale)
        data += quantized
    return struct.pack(f"<{len(scales)}f{len(data)}b", *scales, *data)


def mean_magnitude(block):
    magnitudes = [float_of(magnitude(bits)) for bits in block]
    sums = [0.0] * SIGN_SUMS
    for i, number in enumerate(magnitudes):
        sums[i % SIGN_SUMS] = rounded(sums[i % SIGN_SUMS] + number)
    total = 0.0
    for number in sums:
        total = rounded(total + number)
    if math.isfinite(total):
        return rounded(total / len(block))
    wide = 0.0
    for number in magnitudes:
        wide += number
    return rounded(wide / len(block))


def encode_sign(values):
    scales = [mean_magnitude(block) for block in in_blocks(values, SIGN_BLOCK)]
    data = bytearray(blocks(len(values), 8))
    for i, bits in enumerate(values):
        data[i // 8] |= bits >> 31 << i % 8
    return struct.pack(f"<{len(scales)}f", *scales) + data


# ---- Few of the values ----


def kept_of(count, share):
    return max(1, min(count, math.floor(share * count + 0.5)))


def varint(number):
    encoded = b""
    while number >= 0x80:
        encoded += bytes([number & 0x7f | 0x80])
        number >>= 7
    return encoded + bytes([number])


def encode_kept(values, places, how):
    encode_values = encode_float16 if how["half"] else encode_float32
    return encode_values([values[place] for place in places])


def encode_top_k(values, how):
    order = sorted(range(len(values)), key=lambda place: (-magnitude(values[place]), place))
    places = sorted(order[:how["kept"]])
    gaps = [place - before - 1 for before, place in zip([-1] + places, places)]
    return encode_kept(values, places, how) + b"".join(map(varint, gaps))


def encode_random_k(values, how):
    places = []
    for i in range(how["kept"]):
        begin = i * len(values) // how["kept"]
        end = (i + 1) * len(values) // how["kept"]
        places.append(begin + split_mix(how["seed"], i) % (end - begin))
    return encode_kept(values, places, how)


# ---- A matrix, row by row ----


def first_q(columns, rank):
    x, q = 1, []
    for _ in range(columns * rank):
        x = x * 1664525 + 1013904223 & 0xffffffff
        q.append(signed(x) // 256 * 2.0**-23)
    return q


def product(left, right, inner, rank):
    """left · right, where `right` has `inner` rows of `rank` numbers."""
    result = []
    for begin in range(0, len(left), inner):
        for k in range(rank):
            total = 0.0
            for i in range(inner):
                total = rounded(total + rounded(left[begin + i] * right[i * rank + k]))
            result.append(total)
    return result


def dot(a, b):
    total = 0.0
    for x, y in zip(a, b):
        total += x * y
    return total


def orthonormal(p, rank):
    columns = [p[k::rank] for k in range(rank)]
    for k, column in enumerate(columns):
        for before in columns[:k]:
            share = rounded(dot(column, before))
            column[:] = [rounded(x - rounded(share * y)) for x, y in zip(column, before)]
        norm = rounded(math.sqrt(dot(column, column)))
        factor = rounded(1 / norm) if norm > LEAST_NORM else 0.0
        column[:] = [rounded(x * factor) for x in column]
    return [x for row in zip(*columns) for x in row]


def encode_low_rank(values, columns, rank):
    """None if this matrix is sent as float32."""
    count = len(values)
    if columns == 0 or count % columns != 0 or (count // columns + columns) * rank > count:
        return None
    rows = count // columns
    m = [float_of(bits) for bits in values]
    transposed = [x for column in range(columns) for x in m[column::columns]]
    p = orthonormal(product(m, first_q(columns, rank), columns, rank), rank)
    q = product(transposed, p, rows, rank)
    if not all(map(math.isfinite, q)):
        return None
    return struct.pack(f"<{len(p) + len(q)}I", *map(bits_of, p + q))


# ---- All steps ----


def to_pdict(data):
    counts = collections.Counter(byte for i, byte in enumerate(data)
                                 if len(data) < 2048 or i % 509 < 64)
    dictionary = sorted(range(256), key=lambda byte: (-counts[byte], byte))[:PDICT_WORDS]
    codes = {byte: code for code, byte in enumerate(dictionary)}
    packed = bytearray(blocks(len(data), 2))
    for i, byte in enumerate(data):
        packed[i // 2] |= codes.get(byte, PDICT_WORDS) << i % 2 * 4
    patches = bytes(byte for byte in data if byte not in codes)
    return struct.pack("<I", len(data)) + bytes(dictionary) + packed + patches


def to_part(data, compressor):
    frame = to_pdict(data)
    if compressor == "pdict" and len(frame) <= len(data) - len(data) // 20:
        return struct.pack("<I", len(frame)) + frame
    return struct.pack("<I", len(data) | 1 << 31) + data


def leave_out_zeros(data, width):
    """The map, and the bytes of the values that are there."""
    values = in_blocks(data, width)
    looks = values[::len(values) // 1024 | 1]
    zeros = looks.count(bytes(width))
    if zeros == 0 or zeros < len(looks) // 16:
        return b"\0", data
    bits = bytearray(blocks(len(values), 8))
    for i, value in enumerate(values):
        bits[i // 8] |= any(value) << i % 8
    return b"\1" + bits, b"".join(filter(any, values))


def pack(data, how):
    width, layout = WIDTHS.get(how["transform"], 1), how["byte_layout"]
    parts = []
    if layout == "nonzero" and width > 1:
        first, data = leave_out_zeros(data, width)
        parts.append(first)
    if layout == "plain":
        width = 1
    parts += [data[plane::width] for plane in range(width)]
    if how["compressor"] != "none":
        parts = [to_part(part, how["compressor"]) for part in parts]
    return b"".join(parts)


def transformed(values, how, options, seed):
    if how["transform"] == "int8":
        return encode_int8(values, seed if "stochastic" in options else None)
    if how["transform"] in ("top-k", "random-k"):
        shares = [option for option in options if option != "float16"]
        how.update(kept=kept_of(len(values), float(shares[0])), half="float16" in options)
    if how["transform"] == "top-k":
        return encode_top_k(values, how)
    if how["transform"] == "random-k":
        how["seed"] = seed
        return encode_random_k(values, how)
    elementwise = {"float32": encode_float32, "float16": encode_float16,
                   "bfloat16": encode_bfloat16, "sign": encode_sign}
    return elementwise[how["transform"]](values)


def encode(values, encoding, seed, columns):
    """The payload and the ChunkEncoding of the values, which are given as bits. `encoding` is named
    as by a flag, its shares and ranks written out."""
    transform, *steps = encoding.split("/")
    transform, *options = transform.split(":")
    how = {"count": len(values), "transform": transform, "byte_layout": "plain",
           "compressor": "none", "kept": 0, "half": False, "seed": 0, "columns": 0, "rank": 0}
    for step in steps:
        name = step.split(":")[0]
        how["byte_layout" if name in ("planes", "nonzero") else "compressor"] = name
    if not all(math.isfinite(float_of(bits)) for bits in values):
        how["transform"] = "float32"
    data = None
    if how["transform"] == "low-rank":
        rank = int(options[0])
        data = encode_low_rank(values, columns, rank)
        if data is None:
            how["transform"] = "float32"
        else:
            how.update(columns=columns, rank=rank)
    if data is None:
        data = transformed(values, how, options, seed)
    return pack(data, how), how
