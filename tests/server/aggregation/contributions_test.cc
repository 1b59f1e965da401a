#include "server/aggregation/contributions.h"

#include <string>

#include "common/protocol/protocol_types.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr ReductionOrder kArrival = ReductionOrder::kArrival;
constexpr ReductionOrder kRank = ReductionOrder::kRank;
const absl::Time kNow = absl::FromUnixSeconds(1000);
const absl::optional<Rank> kNobody;

Rank Of(uint32_t index, const std::string& worker = "w") { return {index, worker}; }

class ContributionsTest : public ::testing::Test {
 protected:
  // The push has `number` as its sequence, so that it can be recognized.
  void Add(ReductionOrder order, const Rank& rank, uint64_t number, absl::Time now = kNow) {
    PushHeader header;
    header.sequence = Sequence(number);
    Contribution contribution;
    contribution.header = header;
    contribution.rank = rank;
    contribution.staleness = 10 * number;
    contributions_.Add(std::move(contribution), order, now);
  }

  // The number of the next contribution, or 0 if there is none.
  uint64_t Take(ReductionOrder order, const absl::optional<Rank>& first_missing = kNobody) {
    const absl::optional<Contribution> next = contributions_.TakeNext(order, first_missing);
    if (!next.has_value()) return 0;
    EXPECT_EQ(next->staleness, 10 * next->header.sequence.value());
    return next->header.sequence.value();
  }

  Contributions contributions_;
};

TEST_F(ContributionsTest, StartsEmpty) {
  EXPECT_TRUE(contributions_.empty());
  EXPECT_EQ(contributions_.since(), absl::nullopt);
  EXPECT_EQ(Take(kArrival), 0u);
  EXPECT_EQ(Take(kRank), 0u);
}

TEST_F(ContributionsTest, KnowsWhoseContributionsAreNotInTheSumYet) {
  EXPECT_FALSE(contributions_.IsAccumulating("a"));
  Add(kArrival, Of(0, "a"), 1);
  Add(kArrival, Of(0, "a"), 2);
  Add(kArrival, Of(1, "b"), 3);
  Take(kArrival);
  EXPECT_TRUE(contributions_.IsAccumulating("a"));
  contributions_.OnAccumulated(Of(0, "a"));
  EXPECT_TRUE(contributions_.IsAccumulating("a"));
  contributions_.OnAccumulated(Of(0, "a"));
  EXPECT_FALSE(contributions_.IsAccumulating("a"));
  EXPECT_TRUE(contributions_.IsAccumulating("b"));
}

TEST_F(ContributionsTest, TheLowestRankThatIsMissingWouldBeFirst) {
  EXPECT_TRUE(contributions_.WouldBeFirst(Of(0), Of(0)));
  EXPECT_FALSE(contributions_.WouldBeFirst(Of(1), Of(0)));
  Add(kRank, Of(2), 1);
  EXPECT_FALSE(contributions_.WouldBeFirst(Of(0), kNobody));
  EXPECT_TRUE(contributions_.WouldBeFirst(Of(0), Of(0)));
  EXPECT_TRUE(contributions_.WouldBeFirst(Of(0), Rank()));  // some have not joined
  EXPECT_TRUE(contributions_.WouldBeFirst(Of(1), Of(1)));
}

TEST_F(ContributionsTest, NobodyWouldBeFirstOnceALowerRankHasContributed) {
  Add(kRank, Of(0), 1);
  EXPECT_FALSE(contributions_.WouldBeFirst(Of(1), Of(1)));
  Take(kRank, Of(1));
  EXPECT_FALSE(contributions_.WouldBeFirst(Of(1), Of(1)));
  contributions_.OnAccumulated(Of(0));
  EXPECT_FALSE(contributions_.WouldBeFirst(Of(1), Of(1)));
  contributions_.Clear();
  EXPECT_TRUE(contributions_.WouldBeFirst(Of(1), Of(1)));
}

TEST_F(ContributionsTest, GivesContributionsInTheOrderOfTheirArrival) {
  Add(kArrival, Of(2), 1);
  Add(kArrival, Of(0), 2);
  EXPECT_EQ(Take(kArrival, Of(0)), 1u);
  Add(kArrival, Of(1), 3);
  EXPECT_EQ(Take(kArrival, Of(0)), 2u);
  EXPECT_EQ(Take(kArrival), 3u);
  EXPECT_EQ(Take(kArrival), 0u);
}

TEST_F(ContributionsTest, GivesContributionsInTheOrderOfRanks) {
  Add(kRank, Of(2), 1);
  Add(kRank, Of(0), 2);
  Add(kRank, Of(1), 3);
  EXPECT_EQ(Take(kRank), 2u);
  EXPECT_EQ(Take(kRank), 3u);
  EXPECT_EQ(Take(kRank), 1u);
}

TEST_F(ContributionsTest, WaitsForALowerRankThatMayStillContribute) {
  Add(kRank, Of(1), 1);
  Add(kRank, Of(3), 2);
  EXPECT_EQ(Take(kRank, Of(0)), 0u);
  EXPECT_EQ(Take(kRank, Of(2)), 1u);
  EXPECT_EQ(Take(kRank, Of(2)), 0u);
  EXPECT_EQ(Take(kRank, Of(4)), 2u);
}

TEST_F(ContributionsTest, OrdersWorkersOfOneIndexByName) {
  Add(kRank, Of(1, "b"), 1);
  Add(kRank, Of(1, "a"), 2);
  EXPECT_EQ(Take(kRank, Of(1, "aa")), 2u);
  EXPECT_EQ(Take(kRank, Of(1, "aa")), 0u);
  EXPECT_EQ(Take(kRank), 1u);
}

// The earlier process of a restarted worker may have left a contribution.
TEST_F(ContributionsTest, KeepsSeveralContributionsOfOneRankInTheOrderOfTheirArrival) {
  for (const uint64_t number : {1, 2, 3}) Add(kRank, Of(0), number);
  for (const uint64_t number : {1, 2, 3}) EXPECT_EQ(Take(kRank), number);
}

TEST_F(ContributionsTest, CountsWhatWasTakenToo) {
  Add(kArrival, Of(0), 1);
  Add(kArrival, Of(1), 2);
  EXPECT_EQ(Take(kArrival), 1u);
  EXPECT_EQ(Take(kArrival), 2u);
  EXPECT_EQ(contributions_.accumulated(), 2u);
  EXPECT_FALSE(contributions_.empty());
}

TEST_F(ContributionsTest, CountsThoseThatAreSkipped) {
  contributions_.Skip(kNow);
  EXPECT_EQ(contributions_.skipped(), 1u);
  EXPECT_EQ(contributions_.accumulated(), 0u);
  EXPECT_FALSE(contributions_.empty());
  EXPECT_EQ(Take(kArrival), 0u);
}

TEST_F(ContributionsTest, RemembersWhenTheFirstWasEntered) {
  Add(kArrival, Of(0), 1, kNow);
  Add(kArrival, Of(1), 2, kNow + absl::Seconds(1));
  contributions_.Skip(kNow + absl::Seconds(2));
  EXPECT_EQ(contributions_.since(), kNow);
}

TEST_F(ContributionsTest, RemembersWhenTheFirstWasSkipped) {
  contributions_.Skip(kNow);
  Add(kArrival, Of(0), 1, kNow + absl::Seconds(1));
  EXPECT_EQ(contributions_.since(), kNow);
}

TEST_F(ContributionsTest, BeginsAnewWhenCleared) {
  Add(kArrival, Of(0), 1);
  contributions_.Skip(kNow);
  Take(kArrival);
  contributions_.Clear();
  EXPECT_TRUE(contributions_.empty());
  EXPECT_EQ(contributions_.skipped(), 0u);
  EXPECT_EQ(contributions_.since(), absl::nullopt);
  Add(kArrival, Of(0), 2, kNow + absl::Seconds(9));
  EXPECT_EQ(contributions_.accumulated(), 1u);
  EXPECT_EQ(contributions_.since(), kNow + absl::Seconds(9));
}

}  // namespace
}  // namespace sluice
