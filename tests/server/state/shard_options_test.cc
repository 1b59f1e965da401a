#include "server/state/shard_options.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(GuardsTest, AreOffByDefault) {
  EXPECT_THAT(Guards().Validate(), IsOk());
  EXPECT_FALSE(Guards().skip_not_finite);
}

TEST(GuardsTest, TakeNormsAboveZeroOnly) {
  for (absl::optional<double> Guards::*const norm : {&Guards::clip_norm, &Guards::max_push_norm}) {
    Guards guards;
    guards.*norm = 1e-9;
    EXPECT_THAT(guards.Validate(), IsOk());
    for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
      guards.*norm = bad;
      EXPECT_THAT(guards.Validate(),
                  IsError(Reason::kBadArgument, HasSubstr(absl::StrCat("_norm is ", bad))));
    }
  }
}

TEST(GuardsTest, NameTheNormThatIsWrong) {
  Guards guards;
  guards.max_push_norm = 0;
  EXPECT_THAT(guards.Validate(), IsError(Reason::kBadArgument, HasSubstr("max_push_norm is 0")));
  guards.clip_norm = 0;
  EXPECT_THAT(guards.Validate(), IsError(Reason::kBadArgument, HasSubstr("clip_norm is 0")));
}

}  // namespace
}  // namespace sluice
