// Commands and reports as messages: there and back, with forged fields, and in parts.

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/message_parts.h"
#include "server/rpc/servers/report_messages.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr PushName kName = {SessionId(3), Sequence(4), 5};

StepOrder PrepareOrder() {
  StepOrder order;
  order.kind = StepOrder::Kind::kPrepare;
  order.optimizer.divisor = 3;
  order.optimizer.learning_rates = {0.1, 0.2};
  order.optimizer.ordered = OrderedMomentum{true, 1.5};
  order.optimizer.momentum_divisor = 2.5;
  order.statistics_divisor = 2;
  order.running_means = {{3, 5, 0.5f}};
  AdamOptions changed;
  changed.beta1 = 0.5;
  order.optimizer.changed = ShareOptions({{0, changed}, {2, AdamOptions()}});
  return order;
}

std::vector<ReplicaCommand> AllCommands() {
  StepOrder scale;
  scale.kind = StepOrder::Kind::kScale;
  scale.trust = {{0.5f, 1e-9f}, true};
  PullHeader header;
  header.step = Step(8);
  header.learning_rate = 0.25;
  return {OpenModel{std::make_shared<const Layout>(ParametersOnly(9)), {AdamOptions()}},
          OpenSession{SessionId(3), SessionRole::kObserver},
          OpenSession{SessionId(4), SessionRole::kWorker, SharedMemoryName{5, 6, 1ull << 63, 7}},
          AdmitPush{PushId(6), kName, true},
          AdmitPush{PushId(7), kName, false, true},
          DropPush{PushId(), kName},
          TakeParameters{PushId(6), Step(7)},
          AddPush{PushId(6), {0.5f, 2, 3}, true},
          PrepareOrder(),
          scale,
          PublishStep(),
          ReleasePull{{SessionId(3), 9}, header},
          DropPull{{SessionId(3), 9}},
          EndSession{SessionId(3), {PushId(1), PushId(6)}},
          TakeCheckpoint{"job", Incarnation(2), Step(7)},
          LoadCheckpoint{{"job", Incarnation(2), Step(7), {8, 1ull << 63}, {"momentum"}, 6},
                         {{Incarnation(3), Step(9)}, {Incarnation(4), Step(11)}}},
          ReplayStep{Step(8), Incarnation(4)},
          BeginJournal{Incarnation(5)},
          KeepCheckpoints{{{Incarnation(1), Step(5)}, {Incarnation(2), Step(7)}}},
          SummarizeTensor{4, {2, 1ull << 33, 1024}},
          EndJob{3}};
}

TEST(CommandMessagesTest, ComeBackAsTheyWere) {
  for (const ReplicaCommand& command : AllCommands()) {
    const v1::SequencerMessage message = ToProto(command);
    const auto back = FromProto(message);
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(back->index(), command.index());
    EXPECT_EQ(ToProto(*back).SerializeAsString(), message.SerializeAsString());
  }
}

absl::Status RefusalOf(const v1::SequencerMessage& message) { return FromProto(message).status(); }

TEST(CommandMessagesTest, NameTheFieldThatIsForged) {
  EXPECT_THAT(RefusalOf({}), IsError(Reason::kBadArgument, HasSubstr("field message")));
  v1::SequencerMessage message = ToProto(ReplicaCommand(PrepareOrder()));
  for (const float divisor : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    message.mutable_step_order()->set_divisor(divisor);
    EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field divisor")));
  }
  message = ToProto(ReplicaCommand(PrepareOrder()));
  message.mutable_step_order()->set_learning_rates(1, -1);
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("learning_rates")));
  message = ToProto(ReplicaCommand(PrepareOrder()));
  message.mutable_step_order()->mutable_running_means(0)->set_decay(2);
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("have decay 2")));
  message = ToProto(ReplicaCommand(PrepareOrder()));
  message.mutable_step_order()->mutable_changed_options(0)->set_group(2);
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadOptimizer, HasSubstr("group 2 are there")));
  message.mutable_step_order()->set_kind(v1::StepOrder::KIND_UNSPECIFIED);
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field kind")));
  message.mutable_add_push()->set_parameters(std::nanf(""));
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field parameters")));
  message.mutable_admit_push();
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field push")));
  message.mutable_end_job()->set_exit_code(256);
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field exit_code")));
  message.mutable_open_session()->set_role(static_cast<v1::SessionRole>(9));
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field role")));
  message.mutable_summarize_tensor();
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadArgument, HasSubstr("field number")));
  message.mutable_open_model();
  EXPECT_THAT(RefusalOf(message), IsError(Reason::kBadLayout, ::testing::_));
}

SummaryReport Summary() {
  return {4, {{{-1, 2, 0.5, 4.5, 5, 0}, {0, 3, 1.5, 4.5, 9, 1}}, {-1, 2, 0, 3}}};
}

TEST(ReportMessagesTest, ComeBackAsTheyWere) {
  HaveReport have = {PushId(6), MakeError(Reason::kNotFinite, "NaN at 3"), absl::nullopt, 12};
  HaveReport whole = {PushId(6), absl::OkStatus(), 2.5, 12};
  StripeReport carried = {
      {1, 2}, {7, 8}, {{3, 4}, {5, 6}}, 7, absl::OkStatus(), BadRow{1, ~RowId{0}}, {0.5f}, {9, 10}};
  for (const ReplicaReport& report :
       std::vector<ReplicaReport>{have, whole, carried, LoadedReport{absl::OkStatus(), Step(8)},
                                  LoadedReport{absl::DataLossError("torn"), Step()},
                                  JournalReport{Step(8), absl::OkStatus()},
                                  JournalReport{Step(8), absl::ResourceExhaustedError("full")},
                                  SavedReport{Step(8), absl::OkStatus(), 9},
                                  SavedReport{Step(8), absl::ResourceExhaustedError("full"), 0},
                                  SummaryReport{4, {}}, Summary()}) {
    const v1::HolderMessage message = ToProto(report);
    const auto back = FromProto(message);
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(ToProto(*back).SerializeAsString(), message.SerializeAsString());
  }
  const auto back = FromProto(ToProto(ReplicaReport(have)));
  EXPECT_THAT(std::get<HaveReport>(*back).refused, IsError(Reason::kNotFinite, "NaN at 3"));
  const auto digested = FromProto(ToProto(ReplicaReport(carried)));
  EXPECT_EQ(std::get<StripeReport>(*digested).digests, carried.digests);
  const auto summarized = FromProto(ToProto(ReplicaReport(Summary())));
  const TensorPart& part = std::get<SummaryReport>(*summarized).part;
  ASSERT_EQ(part.units.size(), 2u);
  EXPECT_EQ(part.units[1].deviations, 4.5);
  EXPECT_EQ(part.values, Summary().part.values);
}

TEST(ReportMessagesTest, NameTheFieldThatIsForged) {
  v1::HolderMessage message;
  EXPECT_THAT(FromProto(message), IsError(Reason::kBadArgument, HasSubstr("field message")));
  message.mutable_have()->set_norm(-1);
  EXPECT_THAT(FromProto(message), IsError(Reason::kBadArgument, HasSubstr("field norm")));
  message.mutable_have()->clear_norm();
  message.mutable_have()->mutable_refused()->set_code(0);
  EXPECT_THAT(FromProto(message), IsError(Reason::kBadArgument, HasSubstr("field code")));
  message.mutable_have()->mutable_refused()->set_code(3);
  message.mutable_have()->mutable_refused()->set_reason("NO_SUCH");
  EXPECT_THAT(FromProto(message), IsError(Reason::kBadArgument, HasSubstr("field reason")));
  message.mutable_carried()->add_updates(1);
  EXPECT_THAT(FromProto(message), IsError(Reason::kBadArgument, HasSubstr("field updates")));
}

TEST(ReportMessagesTest, NameTheNumberOfATensorThatIsForged) {
  const auto forged = [](const std::function<void(v1::UnitStatistics&)>& forge) {
    v1::HolderMessage message = ToProto(ReplicaReport(Summary()));
    forge(*message.mutable_summary()->mutable_units(1));
    return FromProto(message).status();
  };
  const auto names = [](const char* field) {
    return IsError(Reason::kBadArgument, HasSubstr(field));
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(forged([](auto& unit) { unit.set_min(-kInfinity); }), names("field min"));
  EXPECT_THAT(forged([](auto& unit) { unit.set_max(kInfinity); }), names("field max"));
  EXPECT_THAT(forged([](auto& unit) { unit.set_mean(std::nan("")); }), names("field mean"));
  EXPECT_THAT(forged([](auto& unit) { unit.set_deviations(-1); }), names("field deviations"));
  EXPECT_THAT(forged([](auto& unit) { unit.set_squares(-1); }), names("field squares"));
  v1::HolderMessage message = ToProto(ReplicaReport(Summary()));
  message.mutable_summary()->set_values(2, std::nanf(""));
  EXPECT_THAT(FromProto(message), names("field values"));
}

TEST(MessagePartsTest, APartThatIsMissingIsFound) {
  v1::HolderMessage large;
  large.set_number(4);
  large.mutable_have()->mutable_refused()->set_message(std::string(3 * kLinkPartBytes, 'x'));
  const std::vector<v1::HolderMessage> parts = CutMessage(large);
  ASSERT_EQ(parts.size(), 4u);
  MessageParts<v1::HolderMessage> whole;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(*whole.Add(parts[i]), absl::nullopt);
  EXPECT_EQ((**whole.Add(parts[3])).SerializeAsString(), large.SerializeAsString());
  EXPECT_EQ(*whole.Add(parts[0]), absl::nullopt);
  v1::HolderMessage next;
  next.set_number(5);
  EXPECT_THAT(whole.Add(next), IsError(Reason::kBadArgument, HasSubstr("4 is not complete")));
  MessageParts<v1::HolderMessage> gap;
  EXPECT_EQ(*gap.Add(parts[0]), absl::nullopt);
  EXPECT_THAT(gap.Add(parts[3]), IsError(Reason::kBadArgument, HasSubstr("field part")));
}

}  // namespace
}  // namespace sluice
