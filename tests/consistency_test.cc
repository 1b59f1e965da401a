#include "common/consistency.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Consistency Make(ConsistencyMode mode, uint32_t quorum, absl::optional<uint32_t> max_staleness) {
  Consistency consistency;
  consistency.mode = mode;
  consistency.quorum = quorum;
  consistency.max_staleness = max_staleness;
  return consistency;
}

TEST(ConsistencyTest, DefaultIsValid) { EXPECT_THAT(Consistency().Validate(), IsOk()); }

TEST(ConsistencyTest, AcceptsAnyStalenessInAsync) {
  for (const absl::optional<uint32_t> staleness :
       {absl::optional<uint32_t>(), absl::optional<uint32_t>(0), absl::optional<uint32_t>(7),
        absl::optional<uint32_t>(4294967295u)}) {
    EXPECT_THAT(Make(ConsistencyMode::kAsync, 1, staleness).Validate(), IsOk());
  }
}

TEST(ConsistencyTest, AcceptsStalenessAbsentOrZeroInSync) {
  EXPECT_THAT(Make(ConsistencyMode::kSync, 4, absl::nullopt).Validate(), IsOk());
  EXPECT_THAT(Make(ConsistencyMode::kSync, 4, 0).Validate(), IsOk());
}

TEST(ConsistencyTest, RefusesStalenessInSync) {
  EXPECT_THAT(Make(ConsistencyMode::kSync, 4, 3).Validate(),
              IsError(Reason::kBadArgument, HasSubstr("max_staleness is 3 in sync mode")));
}

TEST(ConsistencyTest, RefusesAQuorumOfZeroInEveryMode) {
  for (const ConsistencyMode mode : {ConsistencyMode::kSync, ConsistencyMode::kAsync}) {
    EXPECT_THAT(Make(mode, 0, absl::nullopt).Validate(),
                IsError(Reason::kBadArgument, HasSubstr("quorum is 0, expected at least 1")));
  }
}

TEST(ConsistencyModeTest, EveryNameCanBeReadBack) {
  for (const ConsistencyMode mode : {ConsistencyMode::kSync, ConsistencyMode::kAsync}) {
    ConsistencyMode parsed =
        mode == ConsistencyMode::kSync ? ConsistencyMode::kAsync : ConsistencyMode::kSync;
    EXPECT_THAT(ParseConsistencyMode(ConsistencyModeName(mode), &parsed), IsOk());
    EXPECT_EQ(parsed, mode);
  }
  EXPECT_EQ(ConsistencyModeName(ConsistencyMode::kSync), "sync");
  EXPECT_EQ(ConsistencyModeName(ConsistencyMode::kAsync), "async");
}

TEST(ConsistencyModeTest, RefusesAnUnknownNameAndListsTheKnown) {
  for (const char* name : {"bsp", "", "Sync", "sync ", "syn"}) {
    ConsistencyMode mode = ConsistencyMode::kAsync;
    EXPECT_THAT(
        ParseConsistencyMode(name, &mode),
        IsError(Reason::kBadArgument, AllOf(HasSubstr(absl::StrCat("no mode \"", name, "\"")),
                                            HasSubstr("sync and async"))));
    EXPECT_EQ(mode, ConsistencyMode::kAsync);
  }
}

}  // namespace
}  // namespace sluice
