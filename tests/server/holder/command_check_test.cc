#include "server/holder/command_check.h"

#include <memory>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/holder/report_check.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr SessionId kSession(1);
constexpr PushName kFirstName = {kSession, Sequence(0), 1};

OpenModel SmallModel() {
  return {std::make_shared<const Layout>(ParametersOnly(100)), {SgdOptions()}};
}

StepOrder OrderOf(StepOrder::Kind kind) {
  StepOrder order;
  order.kind = kind;
  order.optimizer.learning_rates = {1};
  return order;
}

class CommandCheckTest : public ::testing::Test {
 protected:
  void Open() {
    ASSERT_THAT(check_.Take(SmallModel()), IsOk());
    ASSERT_THAT(check_.Take(OpenSession{kSession}), IsOk());
  }
  void Arrive(uint64_t push) {
    ASSERT_THAT(check_.Take(AdmitPush{PushId(push), kFirstName}), IsOk());
    check_.Note(HaveReport{PushId(push), absl::OkStatus(), absl::nullopt, 0});
  }
  void Initialize() {
    Open();
    Arrive(1);
    ASSERT_THAT(check_.Take(TakeParameters{PushId(1), Step(0)}), IsOk());
  }
  void ExpectRefused(const HolderCommand& command, const char* why) {
    EXPECT_THAT(check_.Take(command), IsError(Reason::kBadArgument, HasSubstr(why)));
  }

  CommandCheck check_;
};

TEST_F(CommandCheckTest, LetsAStepThrough) {
  Initialize();
  Arrive(2);
  for (const HolderCommand& command : std::vector<HolderCommand>{
           AddPush{PushId(2), {}, true}, OrderOf(StepOrder::Kind::kSample),
           OrderOf(StepOrder::Kind::kMeasureSum), OrderOf(StepOrder::Kind::kPrepare),
           OrderOf(StepOrder::Kind::kMake), PublishStep(), OrderOf(StepOrder::Kind::kCopy),
           PublishStep(), ReleasePull{{kSession, 1}, {}}, EndSession{kSession}, EndJob{}}) {
    EXPECT_THAT(check_.Take(command), IsOk()) << command.index();
  }
  ExpectRefused(EndJob{}, "after EndJob");
}

TEST_F(CommandCheckTest, ALogBeginsWithTheModel) { ExpectRefused(PublishStep(), "not begin"); }

TEST_F(CommandCheckTest, SessionsAreOpenedOnceAndThenUsed) {
  Open();
  ExpectRefused(OpenSession{kSession}, "twice");
  ExpectRefused(AdmitPush{PushId(1), {SessionId(2), Sequence(1), 1}}, "session 2, which is not");
  ExpectRefused(EndSession{SessionId(2)}, "session 2, which is not");
}

TEST_F(CommandCheckTest, NothingNeedsParametersBeforeTheyAreThere) {
  Open();
  ExpectRefused(ReleasePull{{kSession, 1}, {}}, "before there are parameters");
  ExpectRefused(TakeCheckpoint{}, "before there are parameters");
  ExpectRefused(AddPush{PushId(1), {}}, "before there are parameters");
  ExpectRefused(OrderOf(StepOrder::Kind::kCopy), "before there are parameters");
}

TEST_F(CommandCheckTest, ACheckpointGivesParametersOnceAndBeforeAnybodyJoins) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  EXPECT_THAT(check_.Take(TakeCheckpoint()), IsOk());
  ExpectRefused(LoadCheckpoint(), "after there are parameters");
}

TEST_F(CommandCheckTest, JournaledStepsFollowACheckpointBeforeAnythingElse) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ExpectRefused(ReplayStep(), "without LoadCheckpoint");
}

TEST_F(CommandCheckTest, JournaledStepsAreMadeOneAfterTheOther) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  for (int step = 0; step < 2; ++step) {
    ASSERT_THAT(check_.Take(ReplayStep()), IsOk());
    ASSERT_THAT(check_.Take(OrderOf(StepOrder::Kind::kCopy)), IsOk());
    ASSERT_THAT(check_.Take(PublishStep()), IsOk());
  }
  ASSERT_THAT(check_.Take(ReplayStep()), IsOk());
  ExpectRefused(ReplayStep(), "before PublishStep");
}

TEST_F(CommandCheckTest, NoJournaledStepIsMadeOnceTheJournalHasBegun) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  ASSERT_THAT(check_.Take(BeginJournal()), IsOk());
  ExpectRefused(ReplayStep(), "after BeginJournal");
}

TEST_F(CommandCheckTest, TheJournalBeginsOnceAndMayDoSoBeforeTheModelIsKnown) {
  ASSERT_THAT(check_.Take(BeginJournal()), IsOk());
  ExpectRefused(BeginJournal(), "twice");
}

TEST_F(CommandCheckTest, NoJournaledStepIsMadeAfterAWorkerHasJoined) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  ASSERT_THAT(check_.Take(OpenSession{kSession}), IsOk());
  ExpectRefused(ReplayStep(), "after OpenSession");
}

TEST_F(CommandCheckTest, ACheckpointIsNotLoadedAfterAWorkerHasJoined) {
  Open();
  ExpectRefused(LoadCheckpoint(), "after OpenSession");
}

TEST_F(CommandCheckTest, APushIsTakenOnceAndOnlyIfItIsHere) {
  Initialize();
  ExpectRefused(AddPush{PushId(1), {}}, "push 1, which is not here");
  ASSERT_THAT(check_.Take(AdmitPush{PushId(2), kFirstName}), IsOk());
  ExpectRefused(AdmitPush{PushId(2), kFirstName}, "twice for push 2");
  ExpectRefused(AddPush{PushId(2), {}}, "push 2, which is not here");
  Arrive(3);
  ASSERT_THAT(check_.Take(EndSession{kSession, {PushId(3)}}), IsOk());
  EXPECT_THAT(check_.Take(AddPush{PushId(3), {}}), IsOk());
}

TEST_F(CommandCheckTest, OrdersComeInTheirPlace) {
  Initialize();
  ExpectRefused(OrderOf(StepOrder::Kind::kPrepare), "without a gradient");
}

TEST_F(CommandCheckTest, NothingIsMadeBeforeItIsPrepared) {
  Initialize();
  ExpectRefused(OrderOf(StepOrder::Kind::kMake), "MAKE before PREPARE");
}

TEST_F(CommandCheckTest, NothingIsPublishedBeforeItIsMade) {
  Initialize();
  ExpectRefused(PublishStep(), "PublishStep before MAKE");
}

TEST_F(CommandCheckTest, AnOrderHasARateForEachGroup) {
  Initialize();
  Arrive(2);
  ASSERT_THAT(check_.Take(AddPush{PushId(2), {}, true}), IsOk());
  StepOrder order = OrderOf(StepOrder::Kind::kPrepare);
  order.optimizer.learning_rates = {1, 2};
  ExpectRefused(order, "2 learning rates, expected 1");
}

TEST_F(CommandCheckTest, IncarnationsAfterTheCheckpointBeganAfterIt) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  LoadCheckpoint load;
  load.source.incarnation = Incarnation(2);
  load.source.step = Step(5);
  load.begins = {{Incarnation(3), Step(4)}};
  ExpectRefused(load, "with incarnation 3, which began before the checkpoint");
}

TEST(ReportCheckTest, AHolderReachesTheCheckpointAtLeast) {
  ReportCheck check(1, 2);
  LoadCheckpoint load;
  load.source.step = Step(5);
  check.Note(load);
  EXPECT_THAT(check.Take(LoadedReport{absl::OkStatus(), Step(4)}),
              IsError(Reason::kBadArgument,
                      HasSubstr("that it can reach step 4 from the checkpoint of step 5")));
}

TEST(ReportCheckTest, AStepIsDurableOnceItIsMadeAndThenForGood) {
  ReportCheck check(1, 2);
  const auto durable = [&check](uint64_t step) {
    return check.Take(JournalReport{Step(step), absl::OkStatus()});
  };
  EXPECT_THAT(durable(0), IsError(Reason::kBadArgument, HasSubstr("was not told to begin")));
  check.Note(BeginJournal());
  check.Note(TakeParameters{PushId(1), Step(0)});
  for (int step = 0; step < 2; ++step) check.Note(PublishStep());
  EXPECT_THAT(durable(1), IsOk());
  EXPECT_THAT(durable(2), IsOk());
  EXPECT_THAT(durable(1), IsError(Reason::kBadArgument, HasSubstr("expected one from 2 to 2")));
  EXPECT_THAT(durable(3), IsError(Reason::kBadArgument, HasSubstr("expected one from 2 to 2")));
}

TEST(ReportCheckTest, AReportHasTheSizesOfItsOrder) {
  ReportCheck check(1, 2);
  EXPECT_THAT(check.Take(StripeReport()), IsError(Reason::kBadArgument, HasSubstr("it has none")));
  check.Note(SmallModel());
  check.Note(OrderOf(StepOrder::Kind::kPrepare));
  StripeReport bad;
  bad.bad = 100;
  EXPECT_THAT(check.Take(bad), IsError(Reason::kBadArgument, HasSubstr("element 100")));
  check.Note(OrderOf(StepOrder::Kind::kMeasureSum));
  EXPECT_THAT(check.Take(StripeReport()), IsError(Reason::kBadArgument, HasSubstr("0 squares")));
  check.Note(OrderOf(StepOrder::Kind::kMake));
  StripeReport large;
  large.sample.resize(1000);
  EXPECT_THAT(check.Take(large), IsError(Reason::kBadArgument, HasSubstr("1000 samples")));
  HaveReport have;
  have.bytes = 401;
  EXPECT_THAT(check.Take(have), IsError(Reason::kBadArgument, HasSubstr("401 bytes")));
}

}  // namespace
}  // namespace sluice
