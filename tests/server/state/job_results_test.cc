#include "server/state/job_results.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Results whose names begin with `prefix`.
Results Many(size_t count, const std::string& prefix) {
  Results results;
  for (size_t i = 0; i < count; ++i) results[absl::StrCat(prefix, i)] = 1;
  return results;
}

TEST(JobResultsTest, KeepsTheFirstResultOfAName) {
  JobResults results;
  EXPECT_THAT(results.Add({{"accuracy", 0.5}}), IsOk());
  EXPECT_THAT(results.Add({{"accuracy", 0.9}, {"epochs", 3}}), IsOk());
  EXPECT_EQ(results.all(), (Results{{"accuracy", 0.5}, {"epochs", 3}}));
}

TEST(JobResultsTest, RefusesNamesThatAreEmptyOrTooLong) {
  JobResults results;
  EXPECT_THAT(results.Add({{std::string(64, 'n'), 1}}), IsOk());
  EXPECT_THAT(results.Add({{"", 1}}), IsError(Reason::kBadArgument, HasSubstr("an empty name")));
  EXPECT_THAT(results.Add({{"a", 1}, {std::string(65, 'n'), 1}}),
              IsError(Reason::kBadArgument,
                      HasSubstr("field results has a name of 65 bytes, expected at most 64")));
  EXPECT_EQ(results.all().size(), 1u);
}

TEST(JobResultsTest, RefusesTooManyInAll) {
  JobResults results;
  for (int leaves = 0; leaves < 16; ++leaves) {
    EXPECT_THAT(results.Add(Many(16, absl::StrCat(leaves, "/"))), IsOk());
  }
  EXPECT_THAT(results.Add(Many(1, "more")),
              IsError(Reason::kBadArgument,
                      HasSubstr("1 new names beside 256 of this job, expected at most 256")));
  EXPECT_THAT(results.Add(Many(16, "3/")), IsOk());
  EXPECT_EQ(results.all().size(), 256u);
}

}  // namespace
}  // namespace sluice
