// Byte layouts and compressors, by the payloads of values whose bytes are known. Zstd's and plain
// planes are in codec_test.cc.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Bits = std::vector<uint32_t>;
using Values = std::vector<float>;

const char* const kNonzero[] = {"float32/nonzero", "float32/nonzero/zstd", "float32/nonzero/pdict"};

Values FromBits(const Bits& bits) {
  Values values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  return values;
}

EncodedChunk Encode(const std::string& encoding, const Values& values) {
  const auto parsed = ParseEncoding(encoding);
  EXPECT_THAT(parsed, IsOk());
  return EncodeValues(0, values, parsed.ok() ? *parsed : Encoding(), {}, BuiltinTransforms());
}

absl::StatusOr<Bits> Decode(EncodedChunk chunk, absl::string_view payload) {
  chunk.payload = payload;
  chunk.checksum = Checksum(payload);
  Values values(chunk.how.count, 4711);
  const absl::Status status = DecodeValues(chunk, absl::MakeSpan(values), BuiltinTransforms());
  if (!status.ok()) return status;
  Bits bits(values.size());
  std::memcpy(bits.data(), values.data(), bits.size() * sizeof(float));
  return bits;
}

absl::StatusOr<Bits> Decode(const EncodedChunk& chunk) { return Decode(chunk, chunk.payload); }

// Bits of which that share is 0.
Bits Sparse(size_t size, double zeros, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::bernoulli_distribution zero(zeros);
  std::normal_distribution<float> normal(0, 1e-3f);
  Bits bits(size);
  for (uint32_t& word : bits) {
    const float value = zero(random) ? 0.0f : normal(random);
    std::memcpy(&word, &value, sizeof(word));
  }
  return bits;
}

TEST(NonzeroTest, HasAMapAndThePlanesOfWhatIsThere) {
  const EncodedChunk chunk =
      Encode("float32/nonzero", FromBits({0, 0x11223344, 0, 0, 0, 0, 0, 0, 0, 0x80000000}));
  EXPECT_EQ(chunk.how.byte_layout, ByteLayout::kNonzeroPlanes);
  EXPECT_EQ(std::string(chunk.payload),
            std::string("\x01\x02\x02\x44\x00\x33\x00\x22\x00\x11\x80", 11));
}

TEST(NonzeroTest, WithoutZerosThereIsNoMap) {
  const EncodedChunk chunk = Encode("float32/nonzero", FromBits({0x11223344, 0x55667788}));
  EXPECT_EQ(std::string(chunk.payload), std::string("\x00\x44\x88\x33\x77\x22\x66\x11\x55", 9));
}

TEST(NonzeroTest, OfHalvesThereAreTwoPlanes) {
  const EncodedChunk chunk = Encode("bfloat16/nonzero", {0.0f, 1.0f, 0.0f});
  EXPECT_EQ(std::string(chunk.payload), std::string("\x01\x02\x80\x3f", 4));
  EXPECT_THAT(Decode(chunk), IsOkAndHolds(Bits({0, 0x3f800000, 0})));
}

TEST(NonzeroTest, OfSingleBytesItIsPlain) {
  const Values values = {0.0f, 1.0f, 0.0f, -1.0f};
  EXPECT_EQ(Encode("int8/nonzero", values).payload, Encode("int8", values).payload);
}

TEST(NonzeroTest, GivesBackEveryBitOfAnySize) {
  for (const char* encoding : kNonzero) {
    for (double zeros : {0.0, 0.05, 0.5, 0.95, 1.0}) {
      for (size_t size = 1; size < 40; ++size) {
        const Bits bits = Sparse(size, zeros, static_cast<uint32_t>(size));
        EXPECT_THAT(Decode(Encode(encoding, FromBits(bits))), IsOkAndHolds(bits)) << encoding;
      }
      for (size_t size : {size_t{8191}, size_t{8193}, size_t{kMostEncoded}}) {
        const Bits bits = Sparse(size, zeros);
        const auto decoded = Decode(Encode(encoding, FromBits(bits)));
        ASSERT_THAT(decoded, IsOk());
        EXPECT_TRUE(*decoded == bits) << encoding << " of " << size;
      }
    }
  }
}

// A bit for each, and 16 of 32 for half of them: all but the exponents are noise.
TEST(NonzeroTest, HalfOfTheValuesTakeLessThanHalfOfTheBytes) {
  const Values values = FromBits(Sparse(kMostEncoded, 0.5));
  const auto size = static_cast<double>(values.size() * sizeof(float));
  EXPECT_LT(Encode("float32/nonzero", values).payload.size(), 0.54 * size);
  EXPECT_LT(Encode("float32/nonzero/pdict", values).payload.size(), 0.48 * size);
  EXPECT_LT(Encode("float32/nonzero/zstd", values).payload.size(), 0.46 * size);
  EXPECT_LT(Encode("float32/nonzero/zstd", Values(kMostEncoded)).payload.size(), 100u);
}

// Whether a map is written for values of which those are zero.
template <typename IsZero>
bool HasMap(size_t size, const IsZero& is_zero) {
  Values values(size, 1.0f);
  for (size_t i = 0; i < size; ++i) values[i] = is_zero(i) ? 0.0f : 1.0f;
  return Encode("float32/nonzero", values).payload[0] == 1;
}

TEST(NonzeroTest, AMapIsWrittenIfASixteenthIsZero) {
  EXPECT_FALSE(HasMap(160, [](size_t i) { return i < 9; }));
  EXPECT_TRUE(HasMap(160, [](size_t i) { return i < 10; }));
  EXPECT_FALSE(HasMap(10, [](size_t) { return false; }));
  EXPECT_TRUE(HasMap(10, [](size_t i) { return i == 9; }));
}

TEST(NonzeroTest, OfManyValuesEveryThirdAndSoOnIsLookedAt) {
  EXPECT_TRUE(HasMap(2047, [](size_t i) { return i % 3 != 0; }));
  EXPECT_FALSE(HasMap(2048, [](size_t i) { return i % 3 != 0; }));
  EXPECT_TRUE(HasMap(2048, [](size_t i) { return i % 3 == 0; }));
}

TEST(NonzeroTest, ZerosInSomeColumnsOfAMatrixAreSeen) {
  for (size_t columns : {2, 64, 100, 256, 512}) {
    const auto odd = [&](size_t i) { return i % columns % 2 == 1; };
    const auto first = [&](size_t i) { return i % columns == 0; };
    EXPECT_TRUE(HasMap(kMostEncoded, odd)) << columns;
    EXPECT_EQ(HasMap(kMostEncoded, first), columns <= 16) << columns;
  }
}

TEST(NonzeroTest, AMapThatIsNoneIsRefused) {
  for (const char* encoding : kNonzero) {
    const EncodedChunk chunk = Encode(encoding, FromBits(Sparse(100, 0.5)));
    std::string payload(chunk.payload);
    payload[chunk.how.compressor == Compressor::kNone ? 0 : 4] = 2;
    const auto decoded = Decode(chunk, payload);
    EXPECT_EQ(ReasonOf(decoded.status()), Reason::kBadChunk);
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("no valid map")) << encoding;
  }
}

TEST(NonzeroTest, OtherNumbersOfValuesThanTheMapSaysAreRefused) {
  for (const char* encoding : kNonzero) {
    const EncodedChunk chunk = Encode(encoding, FromBits(Sparse(100, 0.5)));
    std::string payload(chunk.payload);
    const size_t map = chunk.how.compressor == Compressor::kNone ? 1 : 5;
    payload[map] = static_cast<char>(payload[map] ^ 1);
    EXPECT_EQ(ReasonOf(Decode(chunk, payload).status()), Reason::kBadChunk) << encoding;
  }
}

TEST(NonzeroTest, BitsBehindTheLastValueAreNotRead) {
  const EncodedChunk chunk = Encode("float32/nonzero", FromBits({0, 0x11223344, 0}));
  std::string payload(chunk.payload);
  payload[1] = static_cast<char>(payload[1] | 0xf8);
  EXPECT_THAT(Decode(chunk, payload), IsOkAndHolds(Bits({0, 0x11223344, 0})));
}

TEST(NonzeroTest, APayloadThatIsCutOrGoesOnIsRefused) {
  for (const char* encoding : kNonzero) {
    const EncodedChunk chunk = Encode(encoding, FromBits(Sparse(2000, 0.5)));
    const std::string payload(chunk.payload);
    for (size_t size = 0; size < payload.size(); ++size) {
      ASSERT_EQ(ReasonOf(Decode(chunk, payload.substr(0, size)).status()), Reason::kBadChunk)
          << encoding << " " << size;
    }
    EXPECT_EQ(ReasonOf(Decode(chunk, payload + 'x').status()), Reason::kBadChunk) << encoding;
  }
}

TEST(PdictTest, IsOnePartOfPlainBytesAndOneForEachPlane) {
  const Values values = FromBits(Bits(100, 0x04030201));
  const std::string plain(Encode("float32/pdict", values).payload);
  EXPECT_EQ(plain.substr(0, 4), std::string("\xdb\x00\x00\x00", 4));  // 4 + 15 + 200
  EXPECT_EQ(plain.substr(8, 4), "\x01\x02\x03\x04");
  EXPECT_EQ(plain.substr(23, 4), "\x10\x32\x10\x32");
  const std::string planes(Encode("float32/planes/pdict", values).payload);
  EXPECT_EQ(planes.size(), 4u * (4 + 4 + 15 + 50));
  EXPECT_EQ(planes.substr(0, 9), std::string("\x45\x00\x00\x00\x64\x00\x00\x00\x01", 9));
}

TEST(PdictTest, StoresPlanesOfNoise) {
  const Values values = FromBits(Sparse(kMostEncoded, 0));
  const std::string payload(Encode("float32/planes/pdict", values).payload);
  EXPECT_EQ(payload.substr(0, 4), std::string("\x00\x00\x04\x80", 4));
  EXPECT_LT(payload.size(), kMostEncoded * 36 / 10);
}

// A frame may say up to twice the bytes that it has.
TEST(PdictTest, WhatStandsForMoreBytesThanThereMayBeIsRefused) {
  const EncodedChunk more = Encode("float32/pdict", Values(101, 1.0f));
  const EncodedChunk chunk = Encode("float32/pdict", Values(100, 1.0f));
  const auto decoded = Decode(chunk, more.payload);
  EXPECT_EQ(ReasonOf(decoded.status()), Reason::kBadChunk);
  EXPECT_THAT(std::string(decoded.status().message()),
              HasSubstr("decompresses to 404 bytes, expected at most 400"));
}

}  // namespace
}  // namespace sluice
