#include "common/protocol/consistency.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr ConsistencyMode kModes[] = {ConsistencyMode::kSync, ConsistencyMode::kBackup,
                                      ConsistencyMode::kBounded, ConsistencyMode::kSsp,
                                      ConsistencyMode::kAsync};

// A valid Consistency of `mode`.
Consistency Of(ConsistencyMode mode) {
  Consistency consistency;
  consistency.mode = mode;
  if (mode == ConsistencyMode::kBounded) consistency.max_staleness = 3;
  return consistency;
}

std::string Name(ConsistencyMode mode) { return std::string(ConsistencyModeName(mode)); }

auto Refused(const std::string& found, const std::string& what_to_do) {
  return IsError(Reason::kBadArgument, AllOf(HasSubstr(found), HasSubstr(what_to_do)));
}

// ---- What is valid ----

TEST(ConsistencyTest, DefaultIsValid) { EXPECT_THAT(Consistency().Validate(), IsOk()); }

TEST(ConsistencyTest, EveryModeIsValidWithItsOwnFields) {
  for (const ConsistencyMode mode : kModes) EXPECT_THAT(Of(mode).Validate(), IsOk()) << Name(mode);
}

TEST(ConsistencyTest, AcceptsAnyStalenessInBounded) {
  for (const uint32_t staleness : {0u, 7u, 4294967295u}) {
    Consistency consistency = Of(ConsistencyMode::kBounded);
    consistency.max_staleness = staleness;
    EXPECT_THAT(consistency.Validate(), IsOk());
  }
}

TEST(ConsistencyTest, AcceptsAnySlackInSsp) {
  for (const uint32_t slack : {0u, 7u, 4294967295u}) {
    Consistency consistency = Of(ConsistencyMode::kSsp);
    consistency.slack = slack;
    EXPECT_THAT(consistency.Validate(), IsOk());
  }
}

TEST(ConsistencyTest, AcceptsEveryReductionAndActionInEveryMode) {
  for (const ConsistencyMode mode : kModes) {
    for (const Reduction reduction :
         {Reduction::kMean, Reduction::kWeightedMean, Reduction::kSum}) {
      for (const StepWaitAction action :
           {StepWaitAction::kWait, StepWaitAction::kProceed, StepWaitAction::kEvict}) {
        Consistency consistency = Of(mode);
        consistency.reduction = reduction;
        consistency.on_max_step_wait = action;
        consistency.max_step_wait = absl::Microseconds(1);
        EXPECT_THAT(consistency.Validate(), IsOk()) << Name(mode);
      }
    }
  }
}

// ---- What is not ----

TEST(ConsistencyTest, RefusesAQuorumOfZeroInEveryMode) {
  for (const ConsistencyMode mode : kModes) {
    Consistency consistency = Of(mode);
    consistency.quorum = 0;
    EXPECT_THAT(consistency.Validate(), Refused("quorum is 0", "at least 1")) << Name(mode);
  }
}

TEST(ConsistencyTest, TakesAQuorumWhereTheModeHasAUseForIt) {
  for (const ConsistencyMode mode : kModes) {
    const bool none = mode == ConsistencyMode::kSync || mode == ConsistencyMode::kSsp;
    Consistency consistency = Of(mode);
    EXPECT_EQ(consistency.HasQuorum(), !none);
    consistency.quorum = 4;
    if (none) {
      EXPECT_THAT(consistency.Validate(),
                  Refused(absl::StrCat("quorum is 4 in ", Name(mode), " mode"),
                          "use backup, bounded or async mode"));
    } else {
      EXPECT_THAT(consistency.Validate(), IsOk());
    }
  }
}

TEST(ConsistencyTest, RefusesBoundedWithoutABound) {
  Consistency consistency = Of(ConsistencyMode::kBounded);
  consistency.max_staleness.reset();
  EXPECT_THAT(consistency.Validate(),
              Refused("bounded mode has no max_staleness", "how many steps old"));
}

TEST(ConsistencyTest, RefusesABoundOutsideBoundedEvenOfZero) {
  for (const ConsistencyMode mode : kModes) {
    if (mode == ConsistencyMode::kBounded) continue;
    Consistency consistency = Of(mode);
    consistency.max_staleness = 0;
    EXPECT_THAT(
        consistency.Validate(),
        Refused(absl::StrCat("max_staleness is 0 in ", Name(mode), " mode"), "drop max_staleness"));
  }
}

TEST(ConsistencyTest, RefusesSlackOutsideSsp) {
  for (const ConsistencyMode mode : kModes) {
    if (mode == ConsistencyMode::kSsp) continue;
    Consistency consistency = Of(mode);
    consistency.slack = 2;
    EXPECT_THAT(consistency.Validate(),
                Refused(absl::StrCat("slack is 2 in ", Name(mode), " mode"), "only ssp"));
  }
}

TEST(ConsistencyTest, TakesTheOrderOfRanksInSyncOnly) {
  for (const ConsistencyMode mode : kModes) {
    Consistency consistency = Of(mode);
    consistency.order = ReductionOrder::kRank;
    if (mode == ConsistencyMode::kSync) {
      EXPECT_THAT(consistency.Validate(), IsOk());
    } else {
      EXPECT_THAT(
          consistency.Validate(),
          Refused(absl::StrCat("order of reduction is rank in ", Name(mode)), "only in sync mode"));
    }
  }
}

TEST(ConsistencyTest, DiscountsStaleGradientsOnlyWhereTheyCount) {
  for (const ConsistencyMode mode : kModes) {
    Consistency consistency = Of(mode);
    consistency.discount_stale = true;
    if (mode == ConsistencyMode::kSync || mode == ConsistencyMode::kBackup) {
      EXPECT_THAT(consistency.Validate(),
                  Refused(absl::StrCat("discount_stale is set in ", Name(mode)),
                          "use bounded, ssp or async"));
    } else {
      EXPECT_THAT(consistency.Validate(), IsOk());
    }
  }
}

TEST(ConsistencyTest, ReadsInconsistentlyInAsyncOnly) {
  for (const ConsistencyMode mode : kModes) {
    Consistency consistency = Of(mode);
    consistency.inconsistent_reads = true;
    if (mode == ConsistencyMode::kAsync) {
      EXPECT_THAT(consistency.Validate(), IsOk());
    } else {
      EXPECT_THAT(consistency.Validate(),
                  Refused(absl::StrCat("inconsistent_reads is set in ", Name(mode)),
                          "only async mode has such reads"));
    }
  }
}

TEST(ConsistencyTest, RefusesAWaitOfLessThanAMicrosecond) {
  for (const absl::Duration wait : {absl::Nanoseconds(999), absl::ZeroDuration(), absl::Seconds(-1),
                                    -absl::InfiniteDuration()}) {
    Consistency consistency;
    consistency.max_step_wait = wait;
    EXPECT_THAT(consistency.Validate(),
                Refused("max_step_wait is ", "expected at least a microsecond"));
  }
}

// ---- Names ----

// The names of a flag's values, in the order of their enumerators.
template <typename Enum>
struct Names {
  const char* what;
  std::vector<std::string> names;
  absl::string_view (*name)(Enum);
  absl::Status (*parse)(absl::string_view, Enum*);
};

template <typename Enum>
void ExpectReadBack(const Names<Enum>& all) {
  for (size_t i = 0; i < all.names.size(); ++i) {
    const Enum value = static_cast<Enum>(i);
    EXPECT_EQ(all.name(value), all.names[i]);
    Enum parsed = static_cast<Enum>((i + 1) % all.names.size());
    EXPECT_THAT(all.parse(all.names[i], &parsed), IsOk());
    EXPECT_EQ(parsed, value);
  }
}

template <typename Enum>
void ExpectUnknownRefused(const Names<Enum>& all, const std::string& known) {
  for (const std::string& name : {std::string("bsp"), std::string(), all.names[1] + " ",
                                  all.names[1].substr(0, 2), std::string("Sync")}) {
    Enum value = static_cast<Enum>(1);
    EXPECT_THAT(all.parse(name, &value),
                Refused(absl::StrCat(all.what, " \"", name, "\" is unknown"), known));
    EXPECT_EQ(value, static_cast<Enum>(1));
  }
}

const Names<ConsistencyMode> kModeNames = {"mode",
                                           {"sync", "backup", "bounded", "ssp", "async"},
                                           ConsistencyModeName,
                                           ParseConsistencyMode};
const Names<Reduction> kReductionNames = {
    "reduction", {"mean", "weighted-mean", "sum"}, ReductionName, ParseReduction};
const Names<ReductionOrder> kOrderNames = {
    "order of reduction", {"arrival", "rank"}, ReductionOrderName, ParseReductionOrder};
const Names<StepWaitAction> kActionNames = {
    "action", {"wait", "proceed", "evict"}, StepWaitActionName, ParseStepWaitAction};

TEST(ConsistencyNamesTest, EveryNameCanBeReadBack) {
  ExpectReadBack(kModeNames);
  ExpectReadBack(kReductionNames);
  ExpectReadBack(kOrderNames);
  ExpectReadBack(kActionNames);
}

TEST(ConsistencyNamesTest, AnUnknownNameIsRefusedWithTheListOfTheKnown) {
  ExpectUnknownRefused(kModeNames, "expected one of sync, backup, bounded, ssp, async");
  ExpectUnknownRefused(kReductionNames, "expected one of mean, weighted-mean, sum");
  ExpectUnknownRefused(kOrderNames, "expected one of arrival, rank");
  ExpectUnknownRefused(kActionNames, "expected one of wait, proceed, evict");
}

TEST(ConsistencyNamesTest, AnUnknownNameIsToldTheNearest) {
  ConsistencyMode mode = ConsistencyMode::kSync;
  EXPECT_THAT(ParseConsistencyMode("asinc", &mode),
              IsError(Reason::kBadArgument, EndsWith("ssp, async; did you mean async?")));
  Consistency consistency;
  EXPECT_THAT(ParseStalenessRules("gap-awar", &consistency),
              IsError(Reason::kBadArgument, EndsWith("commas; did you mean gap-aware?")));
}

}  // namespace
}  // namespace sluice
