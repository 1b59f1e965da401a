#include "common/tensor/table_spec.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr RowId kLargest = std::numeric_limits<RowId>::max();
// XXH3-64 of "items", by the library of xxhash.com.
constexpr uint64_t kItems = 0x7afe194e60baa1f8;

TableSpec Items() {
  TableSpec table;
  table.name = "items";
  table.width = 4;
  return table;
}

std::vector<float> RowOf(RowInitializerKind kind, float scale, RowId id, size_t width = 3) {
  const RowInitializer initializer = {kind, scale, 42};
  std::vector<float> row(width, -1);
  InitializeRow(initializer, InitializerKey(initializer, kItems), id, absl::MakeSpan(row));
  return row;
}

TEST(TableSpecTest, AcceptsWidthsUpToTheLargest) {
  TableSpec table = Items();
  for (const uint32_t width : {1u, TableSpec::kMaxWidth}) {
    table.width = width;
    EXPECT_THAT(Validate(table), IsOk());
  }
  for (const uint32_t width : {0u, TableSpec::kMaxWidth + 1}) {
    table.width = width;
    EXPECT_THAT(Validate(table),
                IsError(Reason::kBadLayout, HasSubstr("\"items\" of the layout: its width is")));
  }
}

TEST(TableSpecTest, RefusesScalesThatMakeNoRows) {
  TableSpec table = Items();
  table.initializer.kind = RowInitializerKind::kUniform;
  table.initializer.scale = 0;
  EXPECT_THAT(Validate(table), IsOk());
  for (const float scale : {-1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    table.initializer.scale = scale;
    EXPECT_THAT(Validate(table), IsError(Reason::kBadLayout, HasSubstr("not negative")));
  }
}

TEST(TableSpecTest, RefusesAScaleForZeros) {
  TableSpec table = Items();
  table.initializer.scale = 0.5f;
  EXPECT_THAT(Validate(table),
              IsError(Reason::kBadLayout, HasSubstr("begin as zeros with scale 0.5, expected 0")));
}

TEST(TableSpecTest, RefusesMoreTouchesThanTheMost) {
  TableSpec table = Items();
  table.admit_after = TableSpec::kMaxAdmitAfter;
  EXPECT_THAT(Validate(table), IsOk());
  ++table.admit_after;
  EXPECT_THAT(Validate(table), IsError(Reason::kBadLayout, HasSubstr("admit_after is 1000001")));
}

TEST(TableSpecTest, TablesAreEqualIfAllFieldsAre) {
  const auto differs = [](auto change) {
    TableSpec table = Items();
    change(table);
    return !(table == Items());
  };
  EXPECT_TRUE(Items() == Items());
  EXPECT_TRUE(differs([](TableSpec& t) { t.name = "users"; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.width = 5; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.initializer.kind = RowInitializerKind::kNormal; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.initializer.scale = 1; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.initializer.seed = 1; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.divisor = RowDivisor::kRowContributors; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.admit_after = 1; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.evict_after = 1; }));
  EXPECT_TRUE(differs([](TableSpec& t) { t.max_rows = 1; }));
}

TEST(TableSpecTest, DescribesWhatIsNotUsual) {
  TableSpec table = Items();
  EXPECT_EQ(Describe(table), "\"items\" of rows of 4 that begin as zeros");
  table.initializer = {RowInitializerKind::kUniform, 0.5f, 7};
  table.divisor = RowDivisor::kRowContributors;
  table.admit_after = 2;
  table.evict_after = 3;
  table.max_rows = 4;
  EXPECT_EQ(Describe(table),
            "\"items\" of rows of 4 that begin as uniform 0.5 (seed 7), row divisor, "
            "admit_after 2, evict_after 3, max_rows 4");
}

// The numbers of the next tests were computed in Python from the words of table.proto.

TEST(TableSpecTest, BucketsAreThoseOfTheProtocol) {
  EXPECT_EQ(BucketOf(0), 0u);
  EXPECT_EQ(BucketOf(1), 86u);
  EXPECT_EQ(BucketOf(2), 219u);
  EXPECT_EQ(BucketOf(7), 18u);
  EXPECT_EQ(BucketOf(12345678901234567890u), 203u);
  EXPECT_EQ(BucketOf(kLargest), 180u);
}

TEST(TableSpecTest, ZeroRowsAreZeros) {
  EXPECT_THAT(RowOf(RowInitializerKind::kZero, 0, 7), ElementsAre(0, 0, 0));
}

TEST(TableSpecTest, UniformRowsAreThoseOfTheProtocol) {
  const auto row = [](RowId id) { return RowOf(RowInitializerKind::kUniform, 0.05f, id); };
  EXPECT_THAT(row(0), ElementsAre(0x1.a9890ep-6f, 0x1.0b44a0p-5f, -0x1.364c10p-5f));
  EXPECT_THAT(row(7), ElementsAre(0x1.0c40d4p-6f, 0x1.ed2eeep-6f, -0x1.0f4f8ap-5f));
  EXPECT_THAT(row(kLargest), ElementsAre(-0x1.097380p-7f, -0x1.6df580p-8f, 0x1.cf46dap-6f));
}

TEST(TableSpecTest, NormalRowsAreThoseOfTheProtocol) {
  const auto row = [](RowId id) { return RowOf(RowInitializerKind::kNormal, 0.25f, id); };
  EXPECT_THAT(row(0), ElementsAre(0x1.c8f000p-6f, -0x1.1bc200p-3f, 0x1.9cec00p-4f));
  EXPECT_THAT(row(7), ElementsAre(0x1.910400p-4f, 0x1.c13200p-3f, -0x1.86d000p-2f));
  EXPECT_THAT(row(kLargest), ElementsAre(-0x1.85d000p-6f, 0x1.9eac00p-3f, 0x1.b50c00p-3f));
}

TEST(TableSpecTest, FirstValuesHaveTheirMeanAndDeviation) {
  for (const auto& [kind, deviation] : {std::pair{RowInitializerKind::kUniform, 1 / std::sqrt(3.0)},
                                        std::pair{RowInitializerKind::kNormal, 1.0}}) {
    double sum = 0;
    double squares = 0;
    constexpr int kRows = 1000;
    constexpr int kWidth = 100;
    for (RowId id = 0; id < kRows; ++id) {
      for (const float value : RowOf(kind, 1, id, kWidth)) {
        sum += value;
        squares += double{value} * value;
      }
    }
    EXPECT_NEAR(sum / (kRows * kWidth), 0, 0.015);
    EXPECT_NEAR(std::sqrt(squares / (kRows * kWidth)), deviation, 0.01);
  }
}

}  // namespace
}  // namespace sluice
