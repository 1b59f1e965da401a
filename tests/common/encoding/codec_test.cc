// Every encoding, there and back. What the bytes are is checked against values worked out by hand
// and against plain loops here, not against the code that makes them.
#include "common/encoding/codec.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error.h"
#include "common/encoding/bytes/patched_dictionary.h"
#include "common/encoding/bytes/zstd_codec.h"
#include "common/encoding/checksum.h"
#include "common/encoding/transform.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/bomb.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<float>;
using Limits = std::numeric_limits<float>;

const char* const kAll[] = {
    "float32/planes",
    "float32/zstd",
    "float32/planes/zstd",
    "float32/pdict",
    "float32/planes/pdict",
    "float32/nonzero",
    "float32/nonzero/zstd",
    "float32/nonzero/pdict",
    "float16",
    "float16/planes/zstd",
    "bfloat16",
    "bfloat16/planes",
    "bfloat16/planes/zstd",
    "bfloat16/nonzero/pdict",
    "int8",
    "int8:stochastic",
    "int8/zstd",
    "int8/pdict",
    "sign",
    "top-k:0.1",
    "top-k:0.1:float16",
    "top-k:0.1/zstd",
    "random-k:0.1",
    "random-k:0.1:float16",
    "low-rank:2",
};

// Bytes behind which the process may not read.
class GuardedBytes {
 public:
  explicit GuardedBytes(const std::string& bytes) : size_(bytes.size()) {
    void* const mapped =
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    pages_ = static_cast<char*>(mapped);
    EXPECT_EQ(mprotect(pages_ + page_, page_, PROT_NONE), 0);
    bytes.copy(pages_ + page_ - size_, size_);
  }
  ~GuardedBytes() { munmap(pages_, 2 * page_); }

  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  absl::string_view view() const { return {pages_ + page_ - size_, size_}; }

 private:
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size_;
  char* pages_ = nullptr;
};

const TransformRegistry& Transforms() {
  static const auto* const transforms = new TransformRegistry(BuiltinTransforms());
  return *transforms;
}

Encoding Parsed(const std::string& text) {
  const auto encoding = ParseEncoding(text);
  EXPECT_THAT(encoding, IsOk());
  return encoding.ok() ? *encoding : Encoding();
}

// As gradients are: many small values, few large ones.
Values Gradient(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1e-3f);
  Values values(size);
  for (float& value : values) value = normal(random) * (random() % 16 == 0 ? 10.0f : 1.0f);
  return values;
}

EncodedChunk Encode(const std::string& encoding, absl::Span<const float> values,
                    ChunkContext context = {}) {
  return EncodeValues(0, values, Parsed(encoding), context, Transforms());
}

// In both ways to write them.
absl::Status DecodeTo(const EncodedChunk& chunk, Values& values) {
  Values streamed = values;
  const absl::Status status = DecodeValues(chunk, absl::MakeSpan(values), Transforms());
  EXPECT_EQ(DecodeValues(chunk, absl::MakeSpan(streamed), Transforms(), Writes::kPastCaches),
            status);
  if (status.ok()) {
    EXPECT_EQ(std::memcmp(values.data(), streamed.data(), values.size() * sizeof(float)), 0);
  }
  return status;
}

Values Decoded(const EncodedChunk& chunk) {
  Values values(chunk.how.count, 4711);
  EXPECT_THAT(DecodeTo(chunk, values), IsOk());
  return values;
}

Values ThereAndBack(const std::string& encoding, const Values& values, ChunkContext context = {}) {
  return Decoded(Encode(encoding, values, context));
}

std::vector<uint32_t> Bits(const Values& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T>
std::vector<T> PayloadAs(const EncodedChunk& chunk, size_t offset = 0) {
  std::vector<T> values((chunk.payload.size() - offset) / sizeof(T));
  std::memcpy(values.data(), chunk.payload.data() + offset, values.size() * sizeof(T));
  return values;
}

TEST(CodecTest, LosslessEncodingsGiveBackEveryBit) {
  Values values = Gradient(5000);
  values[0] = -0.0f;
  values[1] = Limits::denorm_min();
  values[2] = Limits::max();
  for (const char* encoding : {"float32/planes", "float32/zstd", "float32/planes/zstd:3",
                               "float32/pdict", "float32/planes/pdict", "float32/nonzero",
                               "float32/nonzero/zstd", "float32/nonzero/pdict"}) {
    for (size_t size : {1, 2, 255, 5000}) {
      const Values part(values.begin(), values.begin() + size);
      EXPECT_EQ(Bits(ThereAndBack(encoding, part)), Bits(part)) << encoding;
    }
  }
}

TEST(CodecTest, EveryEncodingTakesEverySize) {
  for (const char* encoding : kAll) {
    for (size_t size : {1, 2, 7, 8, 9, 255, 256, 257, 1023, 1024, 1025, 3000}) {
      const Values values = Gradient(size);
      Values memory;
      ChunkContext context;
      context.memory = &memory;
      context.columns = size % 3 == 0 ? size / 3 : 0;
      const Values decoded = ThereAndBack(encoding, values, context);
      ASSERT_EQ(decoded.size(), size);
      for (float value : decoded) ASSERT_TRUE(std::isfinite(value)) << encoding << " " << size;
    }
  }
}

TEST(CodecTest, TheSameValuesGiveTheSameBytes) {
  const Values values = Gradient(4096);
  for (const char* encoding : kAll) {
    ChunkContext context;
    context.seed = 17;
    EXPECT_EQ(Encode(encoding, values, context).payload, Encode(encoding, values, context).payload)
        << encoding;
  }
}

TEST(CodecTest, ZerosStayZeros) {
  const Values zeros(1000, 0.0f);
  for (const char* encoding : kAll) EXPECT_EQ(ThereAndBack(encoding, zeros), zeros) << encoding;
}

// Whoever refuses it must see it.
TEST(CodecTest, ValuesThatAreNotFiniteAreSentAsTheyAre) {
  for (float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    Values values = Gradient(600);
    values[417] = bad;
    for (const char* encoding : kAll) {
      EXPECT_EQ(Bits(ThereAndBack(encoding, values)), Bits(values)) << encoding;
    }
  }
}

// ---- float16 and bfloat16 ----

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
  struct Case {
    float value;
    uint16_t half;
  };
  const std::vector<Case> cases = {
      {0.0f, 0x0000},
      {-0.0f, 0x8000},
      {1.0f, 0x3c00},
      {-2.0f, 0xc000},
      {65504.0f, 0x7bff},
      {65519.0f, 0x7bff},
      {1e30f, 0x7bff},
      {-1e30f, 0xfbff},
      {0x1p-14f, 0x0400},
      {0x1p-24f, 0x0001},
      {0x1p-25f, 0x0000},
      {0x1.8p-25f, 0x0001},
      {0x1.8p-24f, 0x0002},
      {0x1.ff8p-15f, 0x03ff},
      {1.0f + 0x1p-11f, 0x3c00},
      {1.0f + 0x1.8p-10f, 0x3c02},
      {0x1.ffcp-15f, 0x03ff + 1},
  };
  Values values;
  std::vector<uint16_t> halves;
  for (const Case& c : cases) {
    values.push_back(c.value);
    halves.push_back(c.half);
  }
  EXPECT_EQ(PayloadAs<uint16_t>(Encode("float16", values)), halves);
}

// All of them but those that are not finite.
TEST(Float16Test, EveryHalfComesBack) {
  std::vector<uint16_t> halves;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00) != 0x7c00) halves.push_back(static_cast<uint16_t>(half));
  }
  EncodedChunk chunk;
  chunk.how.count = halves.size();
  chunk.how.transform = ValueTransform::kFloat16;
  chunk.payload = {reinterpret_cast<const char*>(halves.data()), 2 * halves.size()};
  chunk.checksum = Checksum(chunk.payload);
  const Values values = Decoded(chunk);
  for (size_t i = 0; i < halves.size(); ++i) {
    const int exponent = halves[i] >> 10 & 0x1f;
    const int fraction = halves[i] & 0x3ff;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const double expected = (halves[i] & 0x8000) != 0 ? -magnitude : magnitude;
    ASSERT_EQ(static_cast<double>(values[i]), expected) << halves[i];
    ASSERT_EQ(std::signbit(values[i]), std::signbit(expected)) << halves[i];
  }
  EXPECT_EQ(PayloadAs<uint16_t>(Encode("float16", values)), halves);
}

TEST(Float16Test, InfinitiesAndNansAreDecodedForWhatTheyAre) {
  const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00};
  EncodedChunk chunk;
  chunk.how.count = 3;
  chunk.how.transform = ValueTransform::kFloat16;
  chunk.payload = {reinterpret_cast<const char*>(halves), sizeof(halves)};
  chunk.checksum = Checksum(chunk.payload);
  const Values values = Decoded(chunk);
  EXPECT_EQ(values[0], Limits::infinity());
  EXPECT_EQ(values[1], -Limits::infinity());
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  const Values values = {0.0f,
                         -0.0f,
                         1.0f,
                         FromBits(0x3f808000),  // a tie: down to even
                         FromBits(0x3f818000),  // a tie: up to even
                         FromBits(0x3f808001),
                         FromBits(0xbf807fff),
                         Limits::max(),
                         -Limits::max(),
                         Limits::denorm_min()};
  const std::vector<uint16_t> halves = {0x0000, 0x8000, 0x3f80, 0x3f80, 0x3f82,
                                        0x3f81, 0xbf80, 0x7f7f, 0xff7f, 0x0000};
  EXPECT_EQ(PayloadAs<uint16_t>(Encode("bfloat16", values)), halves);
  EXPECT_EQ(ThereAndBack("bfloat16", {FromBits(0x3f810000)})[0], FromBits(0x3f810000));
}

// ---- int8 and sign ----

TEST(Int8Test, GivesEachBlockAScale) {
  Values values(300, 0.0f);
  values[0] = 254;
  values[1] = -2;
  values[2] = 3;  // a tie: 1.5 to 2
  values[256] = -127e-6f;
  values[257] = 0.4e-6f;
  const EncodedChunk chunk = Encode("int8", values);
  ASSERT_EQ(chunk.payload.size(), 2 * sizeof(float) + 300);
  const auto scales = PayloadAs<float>(chunk);
  EXPECT_EQ(scales[0], 2.0f);
  EXPECT_FLOAT_EQ(scales[1], 1e-6f);
  const auto bytes = PayloadAs<int8_t>(chunk, 2 * sizeof(float));
  EXPECT_EQ(bytes[0], 127);
  EXPECT_EQ(bytes[1], -1);
  EXPECT_EQ(bytes[2], 2);
  EXPECT_EQ(bytes[256], -127);
  EXPECT_EQ(bytes[257], 0);
}

TEST(Int8Test, IsOffByHalfAScaleAtMost) {
  const Values values = Gradient(10000);
  const EncodedChunk chunk = Encode("int8", values);
  const auto scales = PayloadAs<float>(chunk);
  const Values decoded = Decoded(chunk);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::fabs(decoded[i] - values[i]), 0.5001f * scales[i / 256]) << i;
  }
}

TEST(Int8Test, StochasticRoundingIsRightOnAverageAndOffByAScaleAtMost) {
  const Values values = Gradient(256);
  const float scale = PayloadAs<float>(Encode("int8", values))[0];
  std::vector<double> sums(values.size());
  constexpr int kDraws = 4000;
  for (int draw = 0; draw < kDraws; ++draw) {
    ChunkContext context;
    context.seed = 0x9e3779b97f4a7c15u * (draw + 1);
    const Values decoded = ThereAndBack("int8:stochastic", values, context);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::fabs(decoded[i] - values[i]), 1.0001f * scale);
      sums[i] += decoded[i];
    }
  }
  // The mean of so many draws is off by more than six standard deviations for none of them.
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(sums[i] / kDraws, values[i], 6 * 0.5 * scale / std::sqrt(kDraws)) << i;
  }
}

TEST(Int8Test, TheTiniestValuesBecomeZeros) {
  EXPECT_EQ(ThereAndBack("int8", {Limits::denorm_min(), -1e-37f}), (Values{0, 0}));
}

// 127 scales of the largest values would be infinite.
TEST(Int8Test, TheLargestValuesStayFinite) {
  for (const char* encoding : {"int8", "int8:stochastic"}) {
    const Values decoded = ThereAndBack(encoding, {Limits::max(), -Limits::max()});
    EXPECT_NEAR(decoded[0] / Limits::max(), 1, 1e-6) << encoding;
    EXPECT_EQ(decoded[1], -decoded[0]) << encoding;
  }
}

// Their sum is not.
TEST(SignTest, TheLargestValuesStayFinite) {
  const Values values(1024, -Limits::max());
  EXPECT_EQ(ThereAndBack("sign", values), values);
}

TEST(SignTest, TheMeanOfLargeValuesIsThatOfTheirOwnBlock) {
  Values values(2048, 2e38f);
  std::fill(values.begin() + 1024, values.end(), 0);
  values[1024] = 3e38f;
  const Values decoded = ThereAndBack("sign", values);
  EXPECT_TRUE(std::equal(decoded.begin(), decoded.begin() + 1024, values.begin()));
  EXPECT_EQ(decoded[1024], 3e38f / 1024);
}

TEST(SignTest, SendsABitEachAndTheMeanMagnitudeOfABlock) {
  const Values values = {1, -3, 0, 4, -2, 0, 0, 0, 0, -10};
  const EncodedChunk chunk = Encode("sign", values);
  ASSERT_EQ(chunk.payload.size(), sizeof(float) + 2);
  EXPECT_EQ(PayloadAs<float>(chunk)[0], 2.0f);
  EXPECT_EQ(static_cast<uint8_t>(chunk.payload[4]), 0b00010010);
  EXPECT_EQ(static_cast<uint8_t>(chunk.payload[5]), 0b00000010);
  EXPECT_EQ(Decoded(chunk), (Values{2, -2, 2, 2, -2, 2, 2, 2, 2, -2}));
  EXPECT_EQ(Encode("sign", Gradient(1025)).payload.size(), 2 * sizeof(float) + 129);
}

// They may be the last of a mapping that another process shares.
TEST(SignTest, NothingIsReadBehindTheBytes) {
  const GuardedBytes bytes(std::string("\0\0\x80\x3f\x05\x80", 6));
  ChunkEncoding how;
  how.count = 16;
  how.transform = ValueTransform::kSign;
  Values values(16, 4711);
  EXPECT_THAT(MakeSignTransform()->Decode(bytes.view(), how, absl::MakeSpan(values)), IsOk());
  EXPECT_EQ(values, (Values{-1, 1, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1}));
}

TEST(SignTest, ValuesWithoutAFiniteMeanAreSentAsTheyAre) {
  const Values values(8, Limits::max());
  EXPECT_EQ(ThereAndBack("sign", values), values);
}

// ---- top-k and random-k ----

TEST(TopKTest, SendsTheLargestAndTheGapsBetweenThem) {
  Values values(1000, 0.25f);
  values[3] = -8;
  values[4] = 7;
  values[500] = 9;
  const EncodedChunk chunk = Encode("top-k:0.003", values);
  EXPECT_EQ(chunk.how.kept, 3u);
  ASSERT_EQ(chunk.payload.size(), 3 * sizeof(float) + 4);
  EXPECT_EQ(PayloadAs<float>(chunk)[0], -8.0f);
  EXPECT_EQ(PayloadAs<float>(chunk)[1], 7.0f);
  EXPECT_EQ(PayloadAs<float>(chunk)[2], 9.0f);
  EXPECT_EQ(chunk.payload.substr(12), absl::string_view("\x03\x00\xef\x03", 4));  // 495 = 3·128+111
  Values expected(1000, 0.0f);
  expected[3] = -8;
  expected[4] = 7;
  expected[500] = 9;
  EXPECT_EQ(Decoded(chunk), expected);
}

// `values` without all but the `kept` largest.
Values LargestBySorting(const Values& values, size_t kept) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  Values expected(values.size(), 0.0f);
  for (size_t i = 0; i < kept; ++i) expected[order[i]] = values[order[i]];
  return expected;
}

TEST(TopKTest, KeepsWhatSortingWouldKeep) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Values values = Gradient(4097, seed);
    // Many of one magnitude: of those, the first.
    if (seed % 2 == 0) {
      for (size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 == 0 ? 1e-3f : -1e-3f;
    }
    ASSERT_EQ(ThereAndBack("top-k:0.2", values), LargestBySorting(values, 819)) << seed;
  }
}

// Where it looks at some of the values first, they may mislead it.
TEST(TopKTest, KeepsWhatSortingWouldKeepOfManyValues) {
  const Values gradient = Gradient(kMostEncoded - 5);
  Values rising = gradient;
  std::sort(rising.begin(), rising.end());
  Values steps(gradient.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = i % 1024 < 16 ? 1.0f : gradient[i];
  Values few(gradient.size(), 0.0f);
  for (size_t i = 100; i < few.size(); i += 1000) few[i] = gradient[i];
  for (const Values& values : {gradient, rising, steps, few, Values(gradient.size(), 2.0f)}) {
    for (size_t kept : {1, 262, 2621, 200000}) {
      const double share = static_cast<double>(kept) / static_cast<double>(values.size());
      const std::string encoding = absl::StrFormat("top-k:%.9f", share);
      ASSERT_EQ(ThereAndBack(encoding, values), LargestBySorting(values, kept)) << kept;
    }
  }
}

TEST(TopKTest, FindsWhatIsNotFiniteAmongManyValues) {
  Values values = Gradient(kMostEncoded);
  values[200001] = Limits::quiet_NaN();
  EXPECT_EQ(Encode("top-k:0.0001", values).how.transform, ValueTransform::kFloat32);
}

TEST(TopKTest, KeepsAtLeastOneAndAtMostAll) {
  EXPECT_EQ(ThereAndBack("top-k:0.0001", {1, -5, 2}), (Values{0, -5, 0}));
  EXPECT_EQ(ThereAndBack("top-k:1", {1, -5, 2}), (Values{1, -5, 2}));
}

TEST(RandomKTest, SendsOneOfEachOfEqualParts) {
  const Values values = Gradient(1000);
  ChunkContext context;
  context.seed = 5;
  const EncodedChunk chunk = Encode("random-k:0.1", values, context);
  EXPECT_EQ(chunk.how.seed, 5u);
  EXPECT_EQ(chunk.payload.size(), 100 * sizeof(float));
  const Values decoded = Decoded(chunk);
  for (size_t part = 0; part < 100; ++part) {
    int kept = 0;
    for (size_t i = 10 * part; i < 10 * part + 10; ++i) {
      if (decoded[i] == 0) continue;
      EXPECT_EQ(decoded[i], values[i]);
      ++kept;
    }
    EXPECT_EQ(kept, 1) << part;
  }
  context.seed = 6;
  EXPECT_NE(ThereAndBack("random-k:0.1", values, context), decoded);
}

TEST(RandomKTest, EveryElementHasItsTurn) {
  const Values ones(64, 1.0f);
  std::vector<int> kept(ones.size());
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    ChunkContext context;
    context.seed = seed << 32;
    const Values decoded = ThereAndBack("random-k:0.25", ones, context);
    for (size_t i = 0; i < ones.size(); ++i) kept[i] += decoded[i] != 0 ? 1 : 0;
  }
  for (int count : kept) EXPECT_NEAR(count, 250, 82);  // six standard deviations
}

// ---- low-rank ----

TEST(LowRankTest, AMatrixOfThatRankComesBack) {
  constexpr size_t kRows = 60;
  constexpr size_t kColumns = 50;
  const Values a = Gradient(2 * kRows, 1);
  const Values b = Gradient(2 * kColumns, 2);
  Values matrix(kRows * kColumns);
  double norm = 0;
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t column = 0; column < kColumns; ++column) {
      float& value = matrix[row * kColumns + column];
      value = 1e3f * (a[row] * b[column] + a[kRows + row] * b[kColumns + column]);
      norm += value * value;
    }
  }
  ChunkContext context;
  context.columns = kColumns;
  const EncodedChunk chunk = Encode("low-rank:2", matrix, context);
  EXPECT_EQ(chunk.payload.size(), 2 * (kRows + kColumns) * sizeof(float));
  const Values decoded = Decoded(chunk);
  double error = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    error += (decoded[i] - matrix[i]) * (decoded[i] - matrix[i]);
  }
  EXPECT_LT(std::sqrt(error / norm), 1e-5);
}

TEST(LowRankTest, WhatFollowsTheMatrixIsNotPartOfIt) {
  Values values = Gradient(60 * 50);
  ChunkContext context;
  context.columns = 50;
  const EncodedChunk alone = Encode("low-rank:2", values, context);
  EXPECT_EQ(alone.how.transform, ValueTransform::kLowRank);
  values.resize(61 * 50, Limits::quiet_NaN());
  const EncodedChunk followed =
      Encode("low-rank:2", absl::MakeConstSpan(values).first(60 * 50), context);
  EXPECT_EQ(followed.how.transform, ValueTransform::kLowRank);
  EXPECT_EQ(followed.payload, alone.payload);
}

TEST(LowRankTest, TakesTheLargestRank) {
  const Values matrix = Gradient(200 * 200);
  ChunkContext context;
  context.columns = 200;
  const EncodedChunk chunk = Encode(absl::StrFormat("low-rank:%d", kMostRank), matrix, context);
  EXPECT_EQ(chunk.how.transform, ValueTransform::kLowRank);
  EXPECT_EQ(chunk.payload.size(), kMostRank * (200 + 200) * sizeof(float));
}

// The next push begins where this one ended.
TEST(LowRankTest, GetsCloserFromPushToPush) {
  const Values matrix = Gradient(100 * 80);
  Values memory;
  ChunkContext context;
  context.columns = 80;
  context.memory = &memory;
  const auto error = [&] {
    const Values decoded = ThereAndBack("low-rank:4", matrix, context);
    double sum = 0;
    for (size_t i = 0; i < matrix.size(); ++i) {
      sum += (decoded[i] - matrix[i]) * (decoded[i] - matrix[i]);
    }
    return sum;
  };
  const double first = error();
  for (int i = 0; i < 20; ++i) error();
  EXPECT_LT(error(), first);
}

// A push in which columns of Q become zeros, all or one of them, is not the last that is sent.
TEST(LowRankTest, ColumnsOfZerosDoNotStay) {
  const Values matrix = Gradient(20 * 20);
  Values one_row(matrix.size(), 0.0f);
  std::copy_n(matrix.begin(), 20, one_row.begin());
  const auto error = [&](const Values& before) {
    Values memory;
    ChunkContext context;
    context.columns = 20;
    context.memory = &memory;
    ThereAndBack("low-rank:2", before, context);
    const Values decoded = ThereAndBack("low-rank:2", matrix, context);
    double sum = 0;
    for (size_t i = 0; i < matrix.size(); ++i) {
      sum += (decoded[i] - matrix[i]) * (decoded[i] - matrix[i]);
    }
    return sum;
  };
  EXPECT_LT(error(Values(matrix.size(), 0.0f)), 1.5 * error(matrix));
  EXPECT_LT(error(one_row), 1.5 * error(matrix));
}

TEST(LowRankTest, WhatIsTooLargeIsSentAsItIs) {
  const Values large(20 * 20, 3e38f);
  Values memory;
  ChunkContext context;
  context.columns = 20;
  context.memory = &memory;
  EXPECT_EQ(ThereAndBack("low-rank:2", large, context), large);
  for (float value : ThereAndBack("low-rank:2", Gradient(20 * 20), context)) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(LowRankTest, WhatIsNoMatrixIsSentAsItIs) {
  const Values values = Gradient(500);
  EXPECT_EQ(ThereAndBack("low-rank:2", values), values);
  ChunkContext narrow;
  narrow.columns = 2;
  EXPECT_EQ(ThereAndBack("low-rank:2", values, narrow), values);
  EXPECT_EQ(Encode("low-rank:2", values, narrow).how.transform, ValueTransform::kFloat32);
}

// ---- Byte layout and compressor ----

TEST(ByteLayoutTest, PlanesHoldTheBytesOfAllValuesInTurn) {
  const EncodedChunk chunk = Encode("float32/planes", {FromBits(0x11223344), FromBits(0x15263748)});
  EXPECT_EQ(chunk.payload, absl::string_view("\x44\x48\x33\x37\x22\x26\x11\x15", 8));
}

TEST(CompressorTest, PartsThatDoNotShrinkAreStored) {
  const Values values = Gradient(1 << 16);
  const EncodedChunk chunk = Encode("float32/planes/zstd", values);
  // Three planes are as good as noise; that of signs and exponents is not.
  EXPECT_LT(chunk.payload.size(), 3.7 * values.size());
  EXPECT_GT(chunk.payload.size(), 3 * values.size());
  uint32_t head = 0;
  std::memcpy(&head, chunk.payload.data(), sizeof(head));
  EXPECT_EQ(head, (uint32_t{1} << 31) | (1 << 16));
  EXPECT_EQ(ThereAndBack("float32/planes/zstd", values), values);
}

// The sample of 8192 bytes is the first 32 of each 512.
TEST(CompressorTest, BytesWhoseSampleDoesNotShrinkAreStored) {
  std::mt19937 random(1);
  Values values(2048);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t finite = random() & 0xbfffffff;
    if (i % 128 < 8) std::memcpy(&values[i], &finite, sizeof(finite));
  }
  EXPECT_EQ(Encode("float32/zstd", values).payload.size(), 4u + 8192);
  values[0] = 0;
  std::fill(values.begin(), values.begin() + 1024, 0);
  EXPECT_LT(Encode("float32/zstd", values).payload.size(), 1000u);
}

TEST(CompressorTest, AFrameIsOneThatAnyZstdReads) {
  const Values zeros(1000, 0.0f);
  const EncodedChunk chunk = Encode("float32/zstd", zeros);
  uint32_t head = 0;
  std::memcpy(&head, chunk.payload.data(), sizeof(head));
  ASSERT_EQ(head, chunk.payload.size() - 4);
  EXPECT_EQ(chunk.payload.substr(4, 4), absl::string_view("\x28\xb5\x2f\xfd", 4));
  EXPECT_EQ(ZstdSize(chunk.payload.substr(4)), absl::make_optional<uint64_t>(4000));
}

// ---- Hostile chunks ----

absl::Status Decode(EncodedChunk chunk, const std::string& payload) {
  chunk.payload = payload;
  chunk.checksum = Checksum(payload);
  Values values(chunk.how.count);
  return DecodeTo(chunk, values);
}

TEST(HostileChunkTest, AFlippedBitIsNoticed) {
  const Values values = Gradient(700);
  for (const char* encoding : kAll) {
    const EncodedChunk good = Encode(encoding, values);
    for (size_t byte = 0; byte < good.payload.size(); byte += 13) {
      std::string flipped(good.payload);
      flipped[byte] = static_cast<char>(flipped[byte] ^ 0x10);
      EncodedChunk bad = good;
      bad.payload = flipped;
      Values decoded(values.size());
      const absl::Status status = DecodeValues(bad, absl::MakeSpan(decoded), Transforms());
      ASSERT_EQ(ReasonOf(status), Reason::kCorruptChunk) << encoding;
      ASSERT_EQ(status.code(), absl::StatusCode::kAborted);
    }
  }
}

// The checksum is right, as an attacker would send it.
TEST(HostileChunkTest, AnyLengthButTheRightOneIsRefused) {
  ChunkContext context;
  context.columns = 35;
  for (const char* encoding : kAll) {
    const EncodedChunk good = Encode(encoding, Gradient(700), context);
    for (size_t size = 0; size < good.payload.size(); ++size) {
      ASSERT_EQ(ReasonOf(Decode(good, std::string(good.payload.substr(0, size)))),
                Reason::kBadChunk)
          << encoding << " " << size;
    }
    ASSERT_EQ(ReasonOf(Decode(good, std::string(good.payload) + '\0')), Reason::kBadChunk)
        << encoding;
    ASSERT_THAT(Decode(good, std::string(good.payload)), IsOk());
  }
}

TEST(HostileChunkTest, AnyBytesDecodeOrAreRefused) {
  SCOPED_TRACE(HowToRepeat());
  std::mt19937 random(RunSeed());
  for (const char* encoding : kAll) {
    ChunkContext context;
    context.columns = 35;
    const EncodedChunk good = Encode(encoding, Gradient(700), context);
    for (int i = 0; i < 2000; ++i) {
      std::string bytes(good.payload);
      for (uint32_t changes = 1 + random() % 8; changes > 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      EncodedChunk bad = good;
      bad.how.kept = random() % 4 == 0 ? random() % 1000 : good.how.kept;
      bad.how.seed = random();
      const absl::Status status = Decode(bad, bytes);
      ASSERT_TRUE(status.ok() || ReasonOf(status) == Reason::kBadChunk) << status;
    }
  }
}

TEST(HostileChunkTest, ABombIsRefusedBeforeItIsUnpacked) {
  const EncodedChunk chunk = Encode("float32/zstd", Values(1000, 0.0f));
  const absl::Status status = Decode(chunk, Bomb());
  EXPECT_EQ(ReasonOf(status), Reason::kBadChunk);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("decompresses to 268435456 bytes, expected at "
                        "most 4000"));
}

std::string Part(const std::string& bytes) {
  const auto length = static_cast<uint32_t>(bytes.size());
  std::string part(sizeof(length), '\0');
  std::memcpy(&part[0], &length, sizeof(length));
  return part + bytes;
}

std::string FrameOf(const std::string& bytes, Compressor compressor = Compressor::kZstd) {
  std::string frame(2 * bytes.size() + 100, '\0');
  const auto room = absl::MakeSpan(&frame[0], frame.size());
  const auto size =
      compressor == Compressor::kPdict ? PdictCompress(bytes, room) : ZstdCompress(bytes, 1, room);
  EXPECT_TRUE(size.has_value());
  frame.resize(size.value_or(0));
  return frame;
}

// zstd's decoder reads all of these.
TEST(HostileChunkTest, APartIsOneFrameThatSavesBytes) {
  const EncodedChunk chunk = Encode("float32/zstd", Values(10, 0.0f));
  const std::string frame = FrameOf(std::string(40, '\0'));
  EXPECT_THAT(Decode(chunk, Part(frame)), IsOk());

  const std::string skipped("\x50\x2a\x4d\x18\x00\x00\x00\x00", 8);
  EXPECT_EQ(ReasonOf(Decode(chunk, Part(frame + skipped))), Reason::kBadChunk);
  EXPECT_EQ(ReasonOf(Decode(chunk, Part(skipped + frame))), Reason::kBadChunk);
  EXPECT_EQ(ReasonOf(Decode(chunk, Part(frame + FrameOf("")))), Reason::kBadChunk);
  // zstd 0.7's.
  std::string old(frame);
  old[0] = '\x27';
  EXPECT_EQ(ReasonOf(Decode(chunk, Part(old))), Reason::kBadChunk);

  // 40 bytes in a frame of 49: a head of 6, and three for the one block that is not compressed.
  const std::string padded =
      std::string("\x28\xb5\x2f\xfd\x20\x28\x41\x01\x00", 9) + std::string(40, 0);
  EXPECT_THAT(ZstdSize(padded), absl::make_optional<uint64_t>(40));
  const absl::Status status = Decode(chunk, Part(padded));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a part of 49 bytes that decompresses to 40"));
}

TEST(HostileChunkTest, AScaleMustBeFinite) {
  for (const char* encoding : {"int8", "sign"}) {
    const EncodedChunk good = Encode(encoding, Gradient(100));
    std::string bytes(good.payload);
    const float nan = Limits::quiet_NaN();
    std::memcpy(&bytes[0], &nan, sizeof(nan));
    const absl::Status status = Decode(good, bytes);
    EXPECT_EQ(ReasonOf(status), Reason::kBadChunk);
    EXPECT_THAT(std::string(status.message()), HasSubstr("scale of block 0"));
  }
}

TEST(HostileChunkTest, FieldsOutsideTheirDomainAreRefused) {
  EncodedChunk top_k = Encode("top-k:0.1", Gradient(100));
  for (uint64_t kept : {uint64_t{0}, uint64_t{101}, ~uint64_t{0}}) {
    top_k.how.kept = kept;
    EXPECT_EQ(ReasonOf(Decode(top_k, std::string(top_k.payload))), Reason::kBadChunk) << kept;
  }
  ChunkContext context;
  context.columns = 10;
  const EncodedChunk good = Encode("low-rank:1", Gradient(100), context);
  for (uint64_t columns : {uint64_t{0}, uint64_t{7}, uint64_t{101}, ~uint64_t{0}}) {
    EncodedChunk bad = good;
    bad.how.columns = columns;
    EXPECT_EQ(ReasonOf(Decode(bad, std::string(bad.payload))), Reason::kBadChunk) << columns;
  }
  for (uint32_t rank : {0u, 65u, ~0u}) {
    EncodedChunk bad = good;
    bad.how.rank = rank;
    EXPECT_EQ(ReasonOf(Decode(bad, std::string(bad.payload))), Reason::kBadChunk) << rank;
  }
}

TEST(HostileChunkTest, AChunkThatIsTooLargeIsRefused) {
  EncodedChunk chunk;
  chunk.how.count = kMostEncoded + 1;
  chunk.how.transform = ValueTransform::kTopK;
  chunk.how.kept = 1;
  EXPECT_EQ(ReasonOf(Decode(chunk, std::string(5, '\0'))), Reason::kBadChunk);
}

TEST(HostileChunkTest, AnUnknownTransformIsNamedWithTheKnownOnes) {
  EncodedChunk chunk;
  chunk.how.count = 1;
  chunk.how.transform = ValueTransform::kCustom;
  chunk.how.custom = "zippy";
  const absl::Status status = Decode(chunk, "x");
  EXPECT_EQ(ReasonOf(status), Reason::kBadArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"zippy\" is known here; expected float32"));
}

// As numbers of a message are, whatever its enumerations name.
TEST(HostileChunkTest, AStepThatIsNotKnownIsRefused) {
  const EncodedChunk good = Encode("float16", Gradient(10));
  for (int number : {-1, 3, 99, std::numeric_limits<int>::max()}) {
    EncodedChunk transform = good;
    transform.how.transform = static_cast<ValueTransform>(number == 3 ? 100 : number);
    EncodedChunk layout = good;
    layout.how.byte_layout = static_cast<ByteLayout>(number);
    EncodedChunk compressor = good;
    compressor.how.compressor = static_cast<Compressor>(number);
    for (const EncodedChunk& bad : {transform, layout, compressor}) {
      const absl::Status status = Decode(bad, std::string(good.payload));
      EXPECT_EQ(ReasonOf(status), Reason::kBadArgument) << number;
      EXPECT_THAT(std::string(status.message()), HasSubstr("is not known here")) << number;
    }
  }
}

// ---- Anything at all ----

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint32_t Below(uint32_t most) { return static_cast<uint32_t>(random_() % most); }
  uint64_t AnyNumber() { return random_() >> Below(64); }

  // A number as it should be, or nearly, or any.
  uint64_t Near(uint64_t number) {
    const uint32_t kind = Below(8);
    return kind == 0 ? AnyNumber() : kind == 1 ? number + Below(3) - 1 : number;
  }

  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

 private:
  std::mt19937_64 random_;
};

ChunkEncoding AnyEncoding(Dice* dice) {
  ChunkEncoding how;
  how.transform = static_cast<ValueTransform>(dice->Below(8));
  how.byte_layout = static_cast<ByteLayout>(dice->Below(3));
  how.compressor = static_cast<Compressor>(dice->Below(3));
  how.kept = dice->Near(1 + dice->Below(1 + dice->Below(8)));  // few of random gaps fit
  how.half = dice->Below(2) == 1;
  how.seed = dice->AnyNumber();
  how.columns = dice->Near(1 + dice->Below(30));
  const bool whole_rows = how.columns >= 1 && how.columns <= 30 && dice->Below(2) == 1;
  how.count = whole_rows ? how.columns * (1 + dice->Below(30)) : 1 + dice->Below(600);
  how.rank = static_cast<uint32_t>(dice->Near(1 + dice->Below(4)));
  return how;
}

// Of those bytes; nearly.
std::string AnyPart(std::string bytes, Compressor compressor, Dice* dice) {
  uint32_t stored = uint32_t{1} << 31;
  if (dice->Below(2) == 0) {
    bytes = FrameOf(bytes, compressor);
    stored = 0;
  }
  const uint32_t head = static_cast<uint32_t>(dice->Near(bytes.size())) | stored;
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + bytes;
}

// Planes, and before them a map if there is one; nearly.
std::string AnyPlanes(const ChunkEncoding& how, Dice* dice) {
  std::string payload;
  const auto put = [&](std::string bytes) {
    const bool plain = how.compressor == Compressor::kNone;
    payload += plain ? bytes : AnyPart(std::move(bytes), how.compressor, dice);
  };
  size_t there = how.count;
  if (how.byte_layout == ByteLayout::kNonzeroPlanes) {
    std::string map(1, static_cast<char>(dice->Near(dice->Below(2))));
    if (map[0] == 1) {
      map += dice->Bytes((how.count + 7) / 8);
      there = 0;
      for (size_t i = 0; i < how.count; ++i) there += map[1 + i / 8] >> (i % 8) & 1;
    }
    put(map);
  }
  for (size_t i = 0; i < (*Transforms().Find(how.transform, ""))->width(); ++i) {
    put(dice->Below(2) == 0 ? dice->Bytes(there) : std::string(dice->Near(there) % 5000, 'x'));
  }
  return payload;
}

// Of about the right length for most of what `how` may be; in parts if it is compressed.
std::string AnyPayload(const ChunkEncoding& how, Dice* dice) {
  const size_t rows = how.columns > 0 ? how.count / how.columns : 0;
  const size_t sizes[] = {4 * how.count,
                          2 * how.count,
                          how.count + 4 * ((how.count + 255) / 256),
                          4 * ((how.count + 1023) / 1024) + (how.count + 7) / 8,
                          (how.half ? 2 : 4) * how.kept,
                          (how.half ? 3 : 5) * how.kept,
                          4 * how.rank * (rows + how.columns)};
  const auto right = [&] { return dice->Near(sizes[dice->Below(7)]) % 5000; };
  if (how.compressor == Compressor::kNone) return dice->Bytes(right());
  std::string payload;
  for (uint32_t parts = 1 + dice->Below(5); parts > 0; --parts) {
    payload += AnyPart(dice->Below(4) == 0 ? dice->Bytes(right()) : std::string(right(), 'x'),
                       how.compressor, dice);
  }
  return payload;
}

// What is not written would differ.
TEST(HostileChunkTest, AnythingIsDecodedWhollyOrRefused) {
  SCOPED_TRACE(HowToRepeat());
  Dice dice(RunSeed());
  std::map<ValueTransform, int> decoded;
  std::map<std::pair<ByteLayout, Compressor>, int> decoded_planes;
  for (int i = 0; i < 150000; ++i) {
    EncodedChunk chunk;
    chunk.how = AnyEncoding(&dice);
    const bool splits = chunk.how.byte_layout != ByteLayout::kPlain &&
                        (*Transforms().Find(chunk.how.transform, ""))->width() > 1;
    const std::string payload = splits ? AnyPlanes(chunk.how, &dice) : AnyPayload(chunk.how, &dice);
    chunk.payload = payload;
    chunk.checksum = Checksum(payload);
    Values once(chunk.how.count, 4711);
    Values again(chunk.how.count, 815);
    const absl::Status status = DecodeValues(chunk, absl::MakeSpan(once), Transforms());
    ASSERT_TRUE(status.ok() || ReasonOf(status) == Reason::kBadChunk) << status;
    ASSERT_EQ(DecodeValues(chunk, absl::MakeSpan(again), Transforms()), status);
    if (!status.ok()) continue;
    ASSERT_EQ(Bits(once), Bits(again)) << i;
    ++decoded[chunk.how.transform];
    if (splits) ++decoded_planes[{chunk.how.byte_layout, chunk.how.compressor}];
  }
  EXPECT_EQ(decoded.size(), 8u);
  for (const auto& entry : decoded) EXPECT_GT(entry.second, 100) << static_cast<int>(entry.first);
  EXPECT_EQ(decoded_planes.size(), 6u);
  for (const auto& entry : decoded_planes) EXPECT_GT(entry.second, 100);
}

}  // namespace
}  // namespace sluice
