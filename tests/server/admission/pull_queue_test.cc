#include "server/admission/pull_queue.h"

#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A queue of a server in its second incarnation. Answered pulls write their letter, in order.
class PullQueueTest : public ::testing::Test {
 protected:
  // At that step, whose parameters are 40 bytes.
  static PullContext At(uint64_t step, bool inconsistent = false, bool last = false) {
    return {Step(step), 40, inconsistent, 0.25, last};
  }

  // The snapshot of the step that the queue names, as a stripe attaches it.
  static PullResult Release(const PullRequest& /*pull*/, const PullHeader& header) {
    if (header.not_modified) return {header, nullptr};
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->step = header.step;
    return {header, snapshot};
  }

  PullId Wait(char name, uint64_t min_step, absl::optional<Step> have_step = absl::nullopt,
              bool whole = false) {
    PullRequest request;
    request.min_step = Step(min_step);
    request.have_step = have_step;
    request.whole = whole;
    return queue_.Add(request, [this, name](absl::StatusOr<PullResult> result) {
      answered_ += name;
      last_ = std::move(result);
    });
  }

  // Answers the pulls that wait for no later step.
  std::string Publish(uint64_t step, bool inconsistent = false) {
    return Serve(At(step, inconsistent), [step](const PullRequest& request) {
      return request.min_step <= Step(step) ? PullTurn::kNow : PullTurn::kAwaitsStep;
    });
  }

  std::string Serve(const PullContext& context, const PullJudge& judge) {
    Completions completions;
    queue_.NoteAll();
    queue_.Serve(context, judge, now_, &completions);
    return Run(completions);
  }

  // No pull's turn has come. Those in `held_up` wait for other workers.
  void HoldUp(const std::set<uint64_t>& held_up) {
    EXPECT_EQ(Serve(At(0),
                    [&held_up](const PullRequest& request) {
                      return held_up.count(request.min_step.value()) > 0 ? PullTurn::kHeldUp
                                                                         : PullTurn::kAwaitsStep;
                    }),
              "");
  }

  std::string Run(Completions& completions) {
    answered_.clear();
    completions.Run();
    return answered_;
  }

  PullQueue queue_{Incarnation(2), Release};
  absl::Time now_ = absl::FromUnixSeconds(1000);
  absl::StatusOr<PullResult> last_;

 private:
  std::string answered_;
};

TEST_F(PullQueueTest, NumbersPullsFromOne) {
  EXPECT_EQ(Wait('a', 1), PullId(1));
  EXPECT_EQ(Wait('b', 1), PullId(2));
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(PullQueueTest, AnswersThoseThatAStepSatisfiesInTheOrderTheyCame) {
  Wait('a', 3);
  Wait('b', 1);
  Wait('c', 2);
  Wait('d', 1);
  EXPECT_EQ(Publish(0), "");
  EXPECT_EQ(Publish(2), "bcd");
  EXPECT_EQ(Publish(2), "");
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(Publish(9), "a");
}

TEST_F(PullQueueTest, AnswersWithTheSnapshotItsStepAndItsIncarnation) {
  Wait('a', 1);
  ASSERT_EQ(Publish(4), "a");
  ASSERT_TRUE(last_.ok());
  EXPECT_EQ(last_->header.step, Step(4));
  EXPECT_EQ(last_->header.incarnation, Incarnation(2));
  EXPECT_FALSE(last_->header.not_modified);
  EXPECT_EQ(last_->snapshot->step, Step(4));
  EXPECT_EQ(queue_.bytes_answered(), 40u);
}

TEST_F(PullQueueTest, CountsTheBytesOfAPullOfRows) {
  PullRequest request;
  request.row_bytes = 12;
  queue_.Add(request, [](absl::StatusOr<PullResult>) {});
  Publish(1);
  EXPECT_EQ(queue_.bytes_answered(), 12u);
}

TEST_F(PullQueueTest, AnswersNotModifiedWithoutASnapshotToThoseWhoHaveTheStep) {
  Wait('a', 4, Step(4));
  ASSERT_EQ(Publish(4), "a");
  ASSERT_TRUE(last_.ok());
  EXPECT_TRUE(last_->header.not_modified);
  EXPECT_EQ(last_->snapshot, nullptr);
  EXPECT_EQ(queue_.bytes_answered(), 0u);
}

TEST_F(PullQueueTest, SaysWhetherChunksMayBeOfLaterSteps) {
  Wait('a', 1);
  ASSERT_EQ(Publish(1), "a");
  EXPECT_FALSE(last_->header.inconsistent);
  Wait('b', 1);
  ASSERT_EQ(Publish(1, true), "b");
  EXPECT_TRUE(last_->header.inconsistent);
  Wait('c', 1, Step(1));
  ASSERT_EQ(Publish(1, true), "c");
  EXPECT_FALSE(last_->header.inconsistent);  // there are no chunks
}

TEST_F(PullQueueTest, GivesAllOfOneStepToThoseWhoWantIt) {
  Wait('a', 1, absl::nullopt, /*whole=*/true);
  ASSERT_EQ(Publish(1, /*inconsistent=*/true), "a");
  EXPECT_FALSE(last_->header.inconsistent);
  EXPECT_NE(last_->snapshot, nullptr);
}

TEST_F(PullQueueTest, SaysWhetherTheStepIsTheLast) {
  Wait('a', 1);
  ASSERT_EQ(Publish(1), "a");
  EXPECT_FALSE(last_->header.last);
  Wait('b', 1);
  Completions completions;
  queue_.Serve(
      At(1, false, /*last=*/true), [](const PullRequest&) { return PullTurn::kNow; }, now_,
      &completions);
  ASSERT_EQ(Run(completions), "b");
  EXPECT_TRUE(last_->header.last);
}

TEST_F(PullQueueTest, EndsThoseThatAreJudgedToAndLeavesTheOthers) {
  Wait('a', 1);
  Wait('b', 2);
  EXPECT_EQ(Serve(At(0),
                  [](const PullRequest& request) -> absl::StatusOr<PullTurn> {
                    if (request.min_step == Step(2)) return PullTurn::kAwaitsStep;
                    return MakeError(Reason::kUnknownSession, "gone");
                  }),
            "a");
  EXPECT_EQ(ReasonOf(last_.status()), Reason::kUnknownSession);
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(PullQueueTest, EndsPullsBeforeThereAreParameters) {
  Wait('a', 1);
  EXPECT_EQ(Serve({}, [](const PullRequest&) { return PullTurn::kAwaitsStep; }), "");
  EXPECT_EQ(Serve({},
                  [](const PullRequest&) -> absl::StatusOr<PullTurn> {
                    return MakeError(Reason::kUnknownSession, "gone");
                  }),
            "a");
}

TEST_F(PullQueueTest, KnowsWhetherAPullWaits) {
  const PullId pull = Wait('a', 1);
  EXPECT_TRUE(queue_.Waits(pull));
  Publish(1);
  EXPECT_FALSE(queue_.Waits(pull));
  EXPECT_FALSE(queue_.Waits(PullId()));
}

// ---- Pulls that are held up ----

TEST_F(PullQueueTest, HoldsUpNobodyWhoWaitsForAStep) {
  EXPECT_EQ(queue_.held_up_since(), absl::nullopt);
  Wait('a', 1);
  HoldUp({});
  EXPECT_EQ(queue_.held_up_since(), absl::nullopt);
}

TEST_F(PullQueueTest, RemembersSinceWhenTheFirstIsHeldUp) {
  const absl::Time first = now_;
  Wait('a', 1);
  Wait('b', 2);
  HoldUp({2});
  now_ += absl::Seconds(5);
  HoldUp({1, 2});
  EXPECT_EQ(queue_.held_up_since(), first);
}

TEST_F(PullQueueTest, HoldsUpNobodyOnceTheyAreAnswered) {
  Wait('a', 1);
  HoldUp({1});
  now_ += absl::Seconds(5);
  Wait('b', 2);
  HoldUp({1, 2});
  ASSERT_EQ(Publish(1), "a");
  EXPECT_EQ(queue_.held_up_since(), now_);
  ASSERT_EQ(Publish(2), "b");
  EXPECT_EQ(queue_.held_up_since(), absl::nullopt);
}

TEST_F(PullQueueTest, CountsTheHoldUpAnewWhenToldTo) {
  Wait('a', 1);
  Wait('b', 2);
  HoldUp({1});
  now_ += absl::Seconds(5);
  queue_.RestartHoldUp(now_);
  EXPECT_EQ(queue_.held_up_since(), now_);
  Publish(1);
  EXPECT_EQ(queue_.held_up_since(), absl::nullopt);  // b was never held up
}

TEST_F(PullQueueTest, CancelsOneThatWaitsOnce) {
  const PullId first = Wait('a', 1);
  Wait('b', 2);
  EXPECT_TRUE(queue_.Cancel(first));
  EXPECT_FALSE(queue_.Cancel(first));
  EXPECT_EQ(Publish(2), "b");
}

TEST_F(PullQueueTest, CancelsNoneThatWaitsNoMore) {
  const PullId answered = Wait('a', 1);
  Publish(1);
  EXPECT_FALSE(queue_.Cancel(answered));
  EXPECT_FALSE(queue_.Cancel(PullId()));
}

// ---- Which pulls are judged again ----

class JudgedPullsTest : public PullQueueTest {
 protected:
  void WaitOf(uint64_t session) {
    PullRequest request;
    request.session = SessionId(session);
    queue_.Add(request, [](const absl::StatusOr<PullResult>&) {});
  }

  // The sessions of the pulls that Serve() asks about, which all wait on as `turn` says.
  std::vector<uint64_t> Judged(PullTurn turn) {
    std::vector<uint64_t> judged;
    Completions completions;
    queue_.Serve(
        At(0),
        [&](const PullRequest& request) {
          judged.push_back(request.session.value());
          return turn;
        },
        now_, &completions);
    return judged;
  }
};

TEST_F(JudgedPullsTest, OneThatWasAddedIsJudgedOnce) {
  WaitOf(7);
  EXPECT_THAT(Judged(PullTurn::kAwaitsStep), ElementsAre(7));
  EXPECT_THAT(Judged(PullTurn::kAwaitsStep), IsEmpty());
}

TEST_F(JudgedPullsTest, ThoseOfASessionThatIsNamedAreJudgedAgain) {
  for (const uint64_t session : {7, 8, 7, 9}) WaitOf(session);
  Judged(PullTurn::kAwaitsPush);
  queue_.NoteSession(SessionId(7));
  EXPECT_THAT(Judged(PullTurn::kAwaitsPush), ElementsAre(7, 7));
}

TEST_F(JudgedPullsTest, AChangeOfTheConditionsConcernsThoseThatAwaitAStepOrAreHeldUp) {
  WaitOf(1);
  Judged(PullTurn::kAwaitsStep);
  WaitOf(2);
  Judged(PullTurn::kHeldUp);
  WaitOf(3);
  Judged(PullTurn::kAwaitsPush);
  PullConditions conditions;
  const auto changes = {+[](PullConditions& now) { now.step = Step(1); },
                        +[](PullConditions& now) { now.initialized = true; },
                        +[](PullConditions& now) { now.completes = true; },
                        +[](PullConditions& now) { now.slowest = 4; }};
  for (const auto change : changes) {
    change(conditions);
    queue_.Note(conditions);
    EXPECT_THAT(Judged(PullTurn::kHeldUp), ElementsAre(1, 2));
    queue_.Note(conditions);
    EXPECT_THAT(Judged(PullTurn::kHeldUp), IsEmpty());
  }
}

TEST_F(JudgedPullsTest, TheEndOfASessionOfTheJobOrOfTheServerConcernsAll) {
  for (const uint64_t session : {1, 2}) WaitOf(session);
  Judged(PullTurn::kAwaitsPush);
  PullConditions conditions;
  conditions.ended_sessions = 1;
  queue_.Note(conditions);
  EXPECT_THAT(Judged(PullTurn::kAwaitsPush), ElementsAre(1, 2));
  conditions.ends = true;
  queue_.Note(conditions);
  EXPECT_THAT(Judged(PullTurn::kAwaitsPush), ElementsAre(1, 2));
  conditions.serving = false;
  queue_.Note(conditions);
  EXPECT_THAT(Judged(PullTurn::kAwaitsPush), ElementsAre(1, 2));
}

TEST_F(JudgedPullsTest, OneThatWasCancelledIsNot) {
  WaitOf(1);
  WaitOf(2);
  EXPECT_TRUE(queue_.Cancel(PullId(1)));
  EXPECT_THAT(Judged(PullTurn::kAwaitsStep), ElementsAre(2));
  queue_.NoteAll();
  EXPECT_TRUE(queue_.Cancel(PullId(2)));
  EXPECT_THAT(Judged(PullTurn::kAwaitsStep), IsEmpty());
}

}  // namespace
}  // namespace sluice
