#include "worker/compression/auto_encoding.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/encoding/transforms/builtin_transforms.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr size_t kSize = 100000;
constexpr double kBytes = 4.0 * kSize;

// A clock that moves by a millisecond whenever it is read.
class TickingClock final : public Clock {
 public:
  absl::Time Now() const override { return now_ += absl::Milliseconds(1); }

 private:
  mutable absl::Time now_ = absl::UnixEpoch();
};

Values Noise() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  Values values(kSize);
  for (float& value : values) value = normal(random);
  return values;
}

class AutoEncodingTest : public ::testing::Test {
 protected:
  void Use(const std::string& choice, const Layout& layout = ParametersOnly(kSize),
           uint32_t servers = 1) {
    encoding_ =
        std::make_unique<AutoEncoding>(layout, *ParseEncodingChoice(choice), Pipeline::kThroughout,
                                       true, BuiltinTransforms(), servers, clock_);
  }

  // Rounds over a link of the given speed, in bytes per second.
  void Rounds(int count, double link) {
    for (int i = 0; i < count; ++i) {
      encoding_->EndRound({static_cast<uint64_t>(kBytes), absl::Seconds(kBytes / link)}, values_);
    }
  }

  void FirstCheck(double link) {
    Rounds(AutoEncoding::kRoundsBefore + AutoEncoding::kTransfers, link);
  }

  std::string Used() const { return EncodingName(encoding_->encoding()); }

  TickingClock clock_;
  Values values_ = Noise();
  std::unique_ptr<AutoEncoding> encoding_;
};

TEST_F(AutoEncodingTest, IsPlainWhileItMeasuresTheLink) {
  Use("auto:int8");
  EXPECT_FALSE(encoding_->measures_link());
  EXPECT_EQ(Used(), "float32");
  Rounds(AutoEncoding::kRoundsBefore, 1e6);
  for (int i = 0; i < AutoEncoding::kTransfers; ++i) {
    EXPECT_TRUE(encoding_->measures_link());
    EXPECT_EQ(Used(), "float32");
    Rounds(1, 1e6);
  }
  EXPECT_FALSE(encoding_->measures_link());
  EXPECT_EQ(Used(), "int8");
}

TEST_F(AutoEncodingTest, TellsWhatItChoseAndByWhichNumbers) {
  Use("auto:int8");
  EXPECT_EQ(encoding_->chosen().encoding, "");
  FirstCheck(1e6);
  const ChosenEncoding& chosen = encoding_->chosen();
  EXPECT_EQ(chosen.encoding, "int8");
  EXPECT_DOUBLE_EQ(chosen.link_bytes_per_second, 1e6);
  EXPECT_DOUBLE_EQ(chosen.ratio, kBytes / (kSize + 4 * std::ceil(kSize / 256.0)));
  // A tick to decode, which error feedback adds to the one to encode.
  EXPECT_DOUBLE_EQ(chosen.encode_bytes_per_second, kBytes / 0.002);
  EXPECT_DOUBLE_EQ(chosen.decode_bytes_per_second, kBytes / 0.001);
}

TEST_F(AutoEncodingTest, IsPlainOnALinkThatIsFasterThanEncoding) {
  Use("auto:int8,bfloat16");
  FirstCheck(1e9);
  EXPECT_EQ(Used(), "float32");
  EXPECT_DOUBLE_EQ(encoding_->chosen().link_bytes_per_second, 1e9);
  EXPECT_EQ(encoding_->chosen().ratio, 1);
}

TEST_F(AutoEncodingTest, TakesTheSmallestOnASlowLink) {
  Use("auto:bfloat16,top-k:0.01,int8");
  FirstCheck(1e5);
  EXPECT_EQ(Used(), "top-k:0.01");
}

TEST_F(AutoEncodingTest, ChecksAgainNowAndThen) {
  Use("auto:int8");
  FirstCheck(1e6);
  Rounds(AutoEncoding::kRoundsBetween - 1, 1e9);
  EXPECT_FALSE(encoding_->measures_link());
  EXPECT_EQ(Used(), "int8");
  Rounds(1, 1e9);
  EXPECT_TRUE(encoding_->measures_link());
  Rounds(AutoEncoding::kTransfers, 1e9);
  EXPECT_EQ(Used(), "float32");
}

TEST_F(AutoEncodingTest, RoundsWhoseTransferIsUnknownAreNotCounted) {
  Use("auto:int8");
  Rounds(AutoEncoding::kRoundsBefore + 1, 1e6);
  encoding_->EndRound({}, values_);
  Rounds(AutoEncoding::kTransfers - 2, 1e6);
  EXPECT_TRUE(encoding_->measures_link());
  Rounds(1, 1e6);
  EXPECT_EQ(Used(), "int8");
}

TEST_F(AutoEncodingTest, GivesUpACheckThatMeasuresNothing) {
  Use("auto:int8");
  Rounds(AutoEncoding::kRoundsBefore, 1e6);
  for (int i = 0; i < AutoEncoding::kMostRoundsOfCheck; ++i) {
    EXPECT_TRUE(encoding_->measures_link());
    encoding_->EndRound({}, values_);
  }
  EXPECT_FALSE(encoding_->measures_link());
  EXPECT_EQ(Used(), "float32");
}

// Bits at random do not shrink, zeros do.
TEST_F(AutoEncodingTest, RangesThatHardlyShrinkGoPlain) {
  std::mt19937 random(1);
  for (size_t i = 0; i < kSize; ++i) {
    uint32_t bits = random();
    if ((bits & 0x7f800000u) == 0x7f800000u) bits ^= 0x40000000u;  // finite
    values_[i] = 0;
    if (i < kSize / 2) std::memcpy(&values_[i], &bits, sizeof(bits));
  }
  Use("auto", LayoutOf({{"noise", kSize / 2}, {"zeros", kSize / 2}}));
  FirstCheck(1e5);
  EXPECT_EQ(Used(), "float32/nonzero/zstd:1");
  EXPECT_EQ(encoding_->hardly_shrinks(), std::vector<bool>({true, false}));
  EXPECT_NEAR(encoding_->chosen().ratio, 2, 0.02);

  Use("auto", LayoutOf({{"noise", kSize / 2}, {"zeros", kSize / 2}}), 2);
  FirstCheck(1e5);
  EXPECT_EQ(encoding_->hardly_shrinks(), std::vector<bool>({true, false, true, false}));
  EXPECT_NEAR(encoding_->chosen().ratio, 2, 0.02);
}

}  // namespace
}  // namespace sluice
