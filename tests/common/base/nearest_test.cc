#include "common/base/nearest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(NearestTest, FindsTheNameOfWhichTheFewestLettersDiffer) {
  EXPECT_EQ(NearestOf("trian", {"evaluate", "train", "ping"}), "train");
  EXPECT_EQ(NearestOf("mod", {"model", "mode"}), "mode");
  EXPECT_EQ(NearestOf("", {"abc", "de"}), "de");
}

TEST(NearestTest, OfTwoThatAreAsNearTakesTheFirst) { EXPECT_EQ(NearestOf("b", {"a", "c"}), "a"); }

TEST(DidYouMeanTest, NamesWhatATypingErrorMakes) {
  EXPECT_EQ(DidYouMean("asinc", {"sync", "async"}), "; did you mean async?");
  EXPECT_EQ(DidYouMean("ss", {"sync", "ssp"}), "; did you mean ssp?");
  EXPECT_EQ(DidYouMean("fast", {"sync", "async"}), "");
  EXPECT_EQ(DidYouMean("", {"sync"}), "");
}

TEST(NearestTest, FindsNothingAmongNone) { EXPECT_EQ(NearestOf("a", {}), ""); }

}  // namespace
}  // namespace sluice
