#include "common/base/ids.h"

#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// Whether A and B can be compared.
template <typename A, typename B, typename = void>
struct Comparable : std::false_type {};
template <typename A, typename B>
struct Comparable<A, B, std::void_t<decltype(std::declval<A>() == std::declval<B>())>>
    : std::true_type {};

TEST(NumberTest, KeepsKindsApart) {
  EXPECT_TRUE((Comparable<Step, Step>::value));
  EXPECT_FALSE((Comparable<Step, Sequence>::value));
  EXPECT_FALSE((Comparable<Step, uint64_t>::value));
  EXPECT_FALSE((std::is_convertible<uint64_t, Step>::value));
  EXPECT_FALSE((std::is_convertible<Step, uint64_t>::value));
  EXPECT_FALSE((std::is_constructible<Step, Sequence>::value));
}

TEST(NumberTest, StartsAtZeroAndCounts) {
  EXPECT_EQ(Step().value(), 0u);
  EXPECT_EQ(Step(41).Next(), Step(42));
}

TEST(NumberTest, IsOrderedByValueOverAllOfItsRange) {
  const uint64_t largest = std::numeric_limits<uint64_t>::max();
  const std::vector<Step> ascending = {Step(0), Step(1), Step(largest / 2 + 1), Step(largest)};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(ascending[i] == ascending[j], i == j);
      EXPECT_EQ(ascending[i] != ascending[j], i != j);
      EXPECT_EQ(ascending[i] < ascending[j], i < j);
      EXPECT_EQ(ascending[i] <= ascending[j], i <= j);
      EXPECT_EQ(ascending[i] > ascending[j], i > j);
      EXPECT_EQ(ascending[i] >= ascending[j], i >= j);
    }
  }
}

TEST(NumberTest, IsAKeyOfHashMaps) {
  EXPECT_TRUE(
      absl::VerifyTypeImplementsAbslHashCorrectly({Step(0), Step(1), Step(uint64_t{1} << 40)}));
}

TEST(NumberTest, PrintsItsValue) {
  std::ostringstream out;
  out << Step(18446744073709551615u);
  EXPECT_EQ(out.str(), "18446744073709551615");
}

}  // namespace
}  // namespace sluice
