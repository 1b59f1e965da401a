#include "server/replica/command_check.h"

#include <memory>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/report_check.h"
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
  void ExpectRefused(const ReplicaCommand& command, const char* why) {
    EXPECT_THAT(check_.Take(command), IsError(Reason::kBadArgument, HasSubstr(why)));
  }

  CommandCheck check_;
};

TEST_F(CommandCheckTest, LetsAStepThrough) {
  Initialize();
  Arrive(2);
  for (const ReplicaCommand& command : std::vector<ReplicaCommand>{
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

TEST_F(CommandCheckTest, TheJournalDoesNotBeginWithinAStep) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  ASSERT_THAT(check_.Take(ReplayStep()), IsOk());
  ExpectRefused(BeginJournal(), "before PublishStep");
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

TEST_F(CommandCheckTest, AnOrderHasARateForEachTableWithAnOptimizerOfItsOwn) {
  OpenModel model = SmallModel();
  model.optimizer.tables = {{"items", AdagradOptions()}};
  ASSERT_THAT(check_.Take(model), IsOk());
  ASSERT_THAT(check_.Take(OpenSession{kSession}), IsOk());
  Arrive(1);
  ASSERT_THAT(check_.Take(TakeParameters{PushId(1), Step(0)}), IsOk());
  Arrive(2);
  ASSERT_THAT(check_.Take(AddPush{PushId(2), {}, true}), IsOk());
  StepOrder order = OrderOf(StepOrder::Kind::kPrepare);
  order.optimizer.learning_rates = {1, 2};
  EXPECT_THAT(check_.Take(order), IsOk());
}

TEST_F(CommandCheckTest, IncarnationsAfterTheCheckpointBeganAfterIt) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  LoadCheckpoint load;
  load.source.incarnation = Incarnation(2);
  load.source.step = Step(5);
  load.begins = {{Incarnation(3), Step(4)}};
  ExpectRefused(load, "with incarnation 3, which began before the checkpoint");
}

TEST(ReportCheckTest, AReplicaReachesTheCheckpointAtLeast) {
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

TEST_F(CommandCheckTest, ATensorIsSummarizedWhenThereAreParameters) {
  Open();
  ExpectRefused(SummarizeTensor{1, {}}, "before there are parameters");
  Arrive(1);
  ASSERT_THAT(check_.Take(TakeParameters{PushId(1), Step(0)}), IsOk());
  EXPECT_THAT(check_.Take(SummarizeTensor{1, {0, 90, 10}}), IsOk());
  EXPECT_THAT(check_.Take(SummarizeTensor{3, {0, 100, 0}}), IsOk());
  ExpectRefused(SummarizeTensor{3, {}}, "the number 3, expected more than 3");
}

TEST_F(CommandCheckTest, ATensorOfACheckpointIsSummarizedWhenItIsLoaded) {
  ASSERT_THAT(check_.Take(SmallModel()), IsOk());
  ASSERT_THAT(check_.Take(LoadCheckpoint()), IsOk());
  ExpectRefused(SummarizeTensor{1, {}}, "before the checkpoint is loaded");
  check_.Note(LoadedReport{absl::DataLossError("torn"), Step()});
  ExpectRefused(SummarizeTensor{1, {}}, "before the checkpoint is loaded");
  check_.Note(LoadedReport{absl::OkStatus(), Step()});
  EXPECT_THAT(check_.Take(SummarizeTensor{1, {}}), IsOk());
}

TEST_F(CommandCheckTest, OnlyValuesThatATensorHasAreAskedFor) {
  Initialize();
  ExpectRefused(SummarizeTensor{1, {1, 0, 0}}, "index 1, and the model has 1 tensors");
  ExpectRefused(SummarizeTensor{2, {0, 91, 10}}, "10 values from 91 on");
  ExpectRefused(SummarizeTensor{3, {0, 101, 0}}, "0 values from 101 on");
  ExpectRefused(SummarizeTensor{4, {0, 0, 1025}}, "at most 1024");
  ExpectRefused(SummarizeTensor{5, {0, 1, ~uint64_t{0}}}, "of a tensor of 100");
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

// Units of 64: stripe 1 has the last 36 elements.
TEST(ReportCheckTest, ASummaryHasTheSizesThatItsCommandAsksFor) {
  ReportCheck check(1, 2);
  check.Note(SmallModel());
  const auto refusal = [&check](const SummaryReport& report) {
    check.Note(SummarizeTensor{report.number, {0, 60, 10}});
    return check.Take(report);
  };
  const auto says = [](const char* what) { return IsError(Reason::kBadArgument, HasSubstr(what)); };
  EXPECT_THAT(check.Take(SummaryReport{1, {}}), says("summary 1, which it was not asked for"));
  EXPECT_THAT(refusal({2, {{UnitStatistics()}, Values(6)}}), IsOk());
  EXPECT_THAT(refusal({3, {{}, Values(6)}}), says("0 units of a tensor, expected 1"));
  EXPECT_THAT(refusal({4, {{UnitStatistics()}, Values(10)}}),
              says("10 values of a tensor, expected 6"));
  UnitStatistics zeros;
  zeros.zeros = 101;
  EXPECT_THAT(refusal({5, {{zeros}, Values(6)}}), says("101 zeros, expected at most 100"));
  check.Note(SummarizeTensor{6, {}});
  EXPECT_THAT(check.Take(SummaryReport{7, {}}), says("summary 7, which it was not asked for"));
}

}  // namespace
}  // namespace sluice
