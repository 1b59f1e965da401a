#include "worker/client/gradient_fingerprints.h"

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

std::vector<float> Noise(size_t size) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

// A gradient whose last 1001 elements have left, in two parts.
class GradientFingerprintsTest : public ::testing::Test {
 protected:
  GradientFingerprintsTest() : gradient_(Noise(2000)) {
    parts_.Note(1500, absl::MakeSpan(gradient_).subspan(1500));
    parts_.Note(999, absl::MakeSpan(gradient_).subspan(999, 501));
  }

  std::vector<float> gradient_;
  GradientFingerprints parts_;
};

TEST_F(GradientFingerprintsTest, AreUnchangedIfOnlyTheRestHasChanged) {
  gradient_[0] = gradient_[998] = 7;
  EXPECT_EQ(parts_.FirstChanged(gradient_), absl::nullopt);
}

TEST_F(GradientFingerprintsTest, NoticeAnyBit) {
  for (const size_t index : {999, 1000, 1499, 1500, 1501, 1999}) {
    const float before = gradient_[index];
    gradient_[index] = std::nextafter(before, 100.0F);
    EXPECT_EQ(parts_.FirstChanged(gradient_), index < 1500 ? 999 : 1500) << index;
    gradient_[index] = before;
    EXPECT_EQ(parts_.FirstChanged(gradient_), absl::nullopt);
  }
}

TEST_F(GradientFingerprintsTest, NoticeWhatChangesAll) {
  for (float& value : gradient_) value *= 0.5F;
  EXPECT_TRUE(parts_.FirstChanged(gradient_).has_value());
  for (float& value : gradient_) value *= 2;
  EXPECT_FALSE(parts_.FirstChanged(gradient_).has_value());
  for (float& value : gradient_) value = -value;
  EXPECT_TRUE(parts_.FirstChanged(gradient_).has_value());
  for (float& value : gradient_) value = 0;
  EXPECT_TRUE(parts_.FirstChanged(gradient_).has_value());
}

TEST_F(GradientFingerprintsTest, NoticeTheOrder) {
  std::swap(gradient_[1600], gradient_[1601]);
  EXPECT_TRUE(parts_.FirstChanged(gradient_).has_value());
  std::swap(gradient_[1600], gradient_[1601]);
  std::swap(gradient_[1600], gradient_[1602]);
  EXPECT_TRUE(parts_.FirstChanged(gradient_).has_value());
}

TEST_F(GradientFingerprintsTest, TakeNoNumberForAChange) {
  gradient_[1700] = std::numeric_limits<float>::quiet_NaN();
  GradientFingerprints parts;
  parts.Note(1500, absl::MakeSpan(gradient_).subspan(1500));
  EXPECT_FALSE(parts.FirstChanged(gradient_).has_value());
}

TEST_F(GradientFingerprintsTest, AreForgotten) {
  parts_.Clear();
  for (float& value : gradient_) value = 0;
  EXPECT_FALSE(parts_.FirstChanged(gradient_).has_value());
}

}  // namespace
}  // namespace sluice
