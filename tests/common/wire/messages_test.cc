#include "common/wire/messages.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

// The messages as a person writes them, from the contract alone.
constexpr char kJoinRequest[] = R"(
  job_id: "job-1" role: WORKER worker: "worker-2" process_nonce: 18446744073709551615
  host: "node7" pid: 4242 index: 2 version: "0.1.0"
  layout {
    ranges { name: "conv" shape: 4 shape: 3 kind: PARAMETER dtype: FLOAT32 offset: 0 length: 12 }
    ranges { name: "scale" kind: PARAMETER dtype: FLOAT64 offset: 12 length: 1 }
    ranges { name: "mean" shape: 2 kind: STATISTIC dtype: FLOAT16 offset: 13 length: 2 }
    ranges { name: "var" shape: 2 kind: STATISTIC dtype: BFLOAT16 offset: 15 length: 2 }
  }
  optimizer {
    sgd { learning_rate: 0.05 momentum: 0.9 dampening: 0 weight_decay: 0.0001 nesterov: true }
  })";
constexpr char kWelcome[] = R"(
  session: 7 job_id: "job-1" incarnation: 3 step: 40 initialized: true last_sequence: 12
  consistency { mode: BOUNDED quorum: 4 max_staleness: 2 reduction: MEAN order: ARRIVAL }
  index: 2 workers: 5 resumed: true lease { seconds: 12 nanos: 500000000 } pushes_before: 31
  lost_steps: 6 schedule { kind: STEP warmup_steps: 5 step_size: 30 gamma: 0.5 })";
constexpr char kPushHeader[] =
    "session: 7 sequence: 13 step: 41 incarnation: 3 samples: 64 loss: 0.5";
constexpr char kPushResponse[] = "disposition: APPLIED step: 42 incarnation: 3 staleness: 1";
constexpr char kDuplicateResponse[] =
    "disposition: DUPLICATE step: 42 incarnation: 3 staleness: 2 first_disposition: STALE_DROPPED";

template <typename Message>
Message Text(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

MATCHER_P(EqualsProto, text, "") {
  const auto expected = Text<std::decay_t<decltype(arg)>>(text);
  *result_listener << "which is " << arg.ShortDebugString();
  return google::protobuf::util::MessageDifferencer::Equals(arg, expected);
}

// What a peer would read: the message with one thing about it changed.
template <typename Message>
Message Changed(const std::string& text, const std::function<void(Message&)>& change) {
  auto message = Text<Message>(text);
  change(message);
  return message;
}

absl::Status Join(const std::function<void(v1::JoinRequest&)>& change) {
  return FromProto(Changed(kJoinRequest, change)).status();
}
absl::Status JoinRange(const std::function<void(v1::LayoutRange&)>& change) {
  return Join(
      [&](v1::JoinRequest& request) { change(*request.mutable_layout()->mutable_ranges(1)); });
}
absl::Status JoinSgd(const std::function<void(v1::SgdOptions&)>& change) {
  return Join(
      [&](v1::JoinRequest& request) { change(*request.mutable_optimizer()->mutable_sgd()); });
}
absl::Status WelcomeWith(const std::string& consistency) {
  return FromProto(Text<v1::Welcome>(absl::StrCat("consistency {", consistency, "}"))).status();
}

auto RefusesField(const std::string& field, const std::string& found) {
  return IsError(Reason::kBadArgument, HasSubstr(absl::StrCat("field ", field, " is ", found)));
}

TEST(WireJoinTest, ReadsEveryField) {
  const auto request = FromProto(Text<v1::JoinRequest>(kJoinRequest));
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->job_id, "job-1");
  EXPECT_EQ(request->role, SessionRole::kWorker);
  EXPECT_EQ(request->worker, "worker-2");
  EXPECT_EQ(request->process_nonce, ProcessNonce(kLargest));
  EXPECT_EQ(request->host, "node7");
  EXPECT_EQ(request->pid, 4242u);
  EXPECT_EQ(request->index, absl::make_optional(2u));
  EXPECT_EQ(request->version, "0.1.0");
  const auto& sgd = std::get<SgdOptions>(request->optimizer.options);
  EXPECT_EQ(sgd.learning_rate, 0.05);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.dampening, 0);
  EXPECT_EQ(sgd.weight_decay, 0.0001);
  EXPECT_TRUE(sgd.nesterov);
}

TEST(WireJoinTest, ReadsEveryFieldOfTheLayout) {
  const auto request = FromProto(Text<v1::JoinRequest>(kJoinRequest));
  ASSERT_THAT(request, IsOk());
  ASSERT_EQ(request->layout.ranges().size(), 4u);
  const LayoutRange& first = request->layout.ranges()[0];
  EXPECT_EQ(first.name, "conv");
  EXPECT_EQ(first.shape, (std::vector<uint32_t>{4, 3}));
  EXPECT_EQ(first.kind, RangeKind::kParameter);
  EXPECT_EQ(first.dtype, DataType::kFloat32);
  EXPECT_EQ(first.length, 12u);
  EXPECT_EQ(request->layout.ranges()[1].dtype, DataType::kFloat64);
  EXPECT_EQ(request->layout.ranges()[2].dtype, DataType::kFloat16);
  const LayoutRange& last = request->layout.ranges()[3];
  EXPECT_EQ(last.kind, RangeKind::kStatistic);
  EXPECT_EQ(last.dtype, DataType::kBFloat16);
  EXPECT_EQ(last.offset, 15u);
}

TEST(WireJoinTest, SurvivesTheRoundTrip) {
  const auto request = FromProto(Text<v1::JoinRequest>(kJoinRequest));
  ASSERT_THAT(request, IsOk());
  EXPECT_THAT(ToProto(*request), EqualsProto(kJoinRequest));
}

TEST(WireJoinTest, TakesAnObserverWithoutAnOptimizer) {
  const auto request = FromProto(Changed<v1::JoinRequest>(kJoinRequest, [](auto& message) {
    message.set_role(v1::OBSERVER);
    message.clear_optimizer();
  }));
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->role, SessionRole::kObserver);
  EXPECT_EQ(ToProto(*request).role(), v1::OBSERVER);
}

TEST(WireJoinTest, MayLackJobHostPidAndIndex) {
  const auto request = FromProto(Changed<v1::JoinRequest>(kJoinRequest, [](auto& message) {
    message.clear_job_id();
    message.clear_host();
    message.clear_pid();
    message.clear_index();
  }));
  ASSERT_THAT(request, IsOk());
  EXPECT_FALSE(request->index.has_value());
  EXPECT_FALSE(ToProto(*request).has_index());
}

TEST(WireJoinTest, TellsAnIndexOfZeroFromNone) {
  const auto request = FromProto(
      Changed<v1::JoinRequest>(kJoinRequest, [](auto& message) { message.set_index(0); }));
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->index, absl::make_optional(0u));
  EXPECT_TRUE(ToProto(*request).has_index());
}

TEST(WireJoinTest, RefusesAnUnknownRole) {
  for (const int role : {0, 3, -1, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(Join([&](auto& request) { request.set_role(static_cast<v1::SessionRole>(role)); }),
                RefusesField("role", absl::StrCat(role, ", expected WORKER or OBSERVER")));
  }
}

TEST(WireJoinTest, TakesWorkerNamesOf128BytesAndRefusesLongerAndEmptyOnes) {
  const auto named = [](size_t size) {
    return Join([&](auto& request) { request.set_worker(std::string(size, 'w')); });
  };
  EXPECT_THAT(named(1), IsOk());
  EXPECT_THAT(named(128), IsOk());
  EXPECT_THAT(named(129), RefusesField("worker", "a name of 129 bytes, expected 1 to 128"));
  EXPECT_THAT(named(0), RefusesField("worker", "a name of 0 bytes"));
  EXPECT_LT(named(1 << 20).message().size(), 200u);
}

TEST(WireJoinTest, TakesHostNamesOf256BytesAndRefusesLongerOnes) {
  const auto at = [](size_t size) {
    return Join([&](auto& request) { request.set_host(std::string(size, 'h')); });
  };
  EXPECT_THAT(at(256), IsOk());
  EXPECT_THAT(at(257), RefusesField("host", "a name of 257 bytes, expected at most 256"));
}

TEST(WireJoinTest, TakesNamesOfEncodingsOf64BytesAndRefusesLongerOnes) {
  const auto at = [](size_t push, size_t pull) {
    return Join([&](auto& request) {
      request.set_push_encoding(std::string(push, 'e'));
      request.set_pull_encoding(std::string(pull, 'e'));
    });
  };
  EXPECT_THAT(at(64, 64), IsOk());
  EXPECT_THAT(at(65, 0), RefusesField("push_encoding", "a name of 65 bytes, expected at most 64"));
  EXPECT_THAT(at(0, 65), RefusesField("pull_encoding", "a name of 65 bytes, expected at most 64"));
}

TEST(WireJoinTest, TakesVersionsOf64BytesAndRefusesLongerOnes) {
  const auto at = [](size_t size) {
    return Join([&](auto& request) { request.set_version(std::string(size, '1')); });
  };
  EXPECT_THAT(at(64), IsOk());
  EXPECT_THAT(at(65), RefusesField("version", "a name of 65 bytes, expected at most 64"));
}

TEST(WireJoinTest, RefusesANonceOfZero) {
  EXPECT_THAT(Join([](auto& request) { request.clear_process_nonce(); }),
              RefusesField("process_nonce", "0"));
}

TEST(WireJoinTest, RefusesAMissingOrEmptyLayout) {
  EXPECT_THAT(Join([](auto& request) { request.clear_layout(); }),
              IsError(Reason::kBadLayout, HasSubstr("has 0 ranges")));
  EXPECT_THAT(Join([](auto& request) { request.mutable_layout()->clear_ranges(); }),
              IsError(Reason::kBadLayout, HasSubstr("has 0 ranges")));
}

TEST(WireJoinTest, RefusesRangesThatLie) {
  const auto lies = [](const std::string& problem) {
    return IsError(Reason::kBadLayout,
                   AllOf(HasSubstr("range 1 of the layout (\"scale\")"), HasSubstr(problem)));
  };
  EXPECT_THAT(JoinRange([](auto& range) { range.set_offset(13); }), lies("at 13, expected 12"));
  EXPECT_THAT(JoinRange([](auto& range) { range.set_offset(kLargest); }), lies("expected 12"));
  EXPECT_THAT(JoinRange([](auto& range) { range.set_length(kLargest); }), lies("shape []"));
  EXPECT_THAT(JoinRange([](auto& range) { range.clear_length(); }), lies("length of 0"));
  EXPECT_THAT(JoinRange([](auto& range) { range.add_shape(4294967295u); }),
              lies("shape [4294967295]"));
  EXPECT_THAT(JoinRange([](auto& range) { range.clear_name(); }),
              IsError(Reason::kBadLayout, HasSubstr("name has 0 bytes")));
  EXPECT_THAT(JoinRange([](auto& range) { range.set_name("conv"); }),
              IsError(Reason::kBadLayout, HasSubstr("another range has the same name")));
}

TEST(WireJoinTest, RefusesUnknownKindsAndDataTypesAndNamesTheRange) {
  for (const int value : {0, 6, -1, 1000}) {
    EXPECT_THAT(
        JoinRange([&](auto& range) { range.set_kind(static_cast<v1::RangeKind>(value)); }),
        IsError(Reason::kBadLayout, HasSubstr(absl::StrCat("range \"scale\" has kind ", value))));
    EXPECT_THAT(
        JoinRange([&](auto& range) { range.set_dtype(static_cast<v1::DataType>(value)); }),
        IsError(Reason::kBadLayout, HasSubstr(absl::StrCat("range \"scale\" has dtype ", value))));
  }
}

TEST(WireJoinTest, ShowsLittleOfAHugeRangeName) {
  const absl::Status status = JoinRange([](auto& range) {
    range.set_name(std::string(1 << 20, 'n'));
    range.clear_kind();
  });
  EXPECT_THAT(status, IsError(Reason::kBadLayout, HasSubstr("kind 0")));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(WireJoinTest, RefusesAWorkerWithoutAKnownOptimizer) {
  EXPECT_THAT(Join([](auto& request) { request.clear_optimizer(); }),
              IsError(Reason::kBadOptimizer, HasSubstr("it knows sgd")));
  EXPECT_THAT(Join([](auto& request) { request.mutable_optimizer()->clear_optimizer(); }),
              IsError(Reason::kBadOptimizer, HasSubstr("it knows sgd")));
}

TEST(WireJoinTest, RefusesOptionsOutOfTheirDomainAndNamesThem) {
  EXPECT_THAT(JoinSgd([](auto& sgd) { sgd.set_learning_rate(-1); }),
              IsError(Reason::kBadOptimizer, HasSubstr("learning_rate is -1")));
  EXPECT_THAT(JoinSgd([](auto& sgd) { sgd.set_momentum(std::nan("")); }),
              IsError(Reason::kBadOptimizer, HasSubstr("momentum is nan")));
  EXPECT_THAT(JoinSgd([](auto& sgd) { sgd.set_weight_decay(HUGE_VAL); }),
              IsError(Reason::kBadOptimizer, HasSubstr("weight_decay is inf")));
  EXPECT_THAT(JoinSgd([](auto& sgd) { sgd.set_dampening(0.5); }),
              IsError(Reason::kBadOptimizer, HasSubstr("Nesterov")));
}

TEST(WireJoinTest, TakesAWorkerThatAveragesParameters) {
  const std::string text = absl::StrReplaceAll(
      kJoinRequest, {{"sgd { learning_rate: 0.05 momentum: 0.9 dampening: 0 weight_decay: 0.0001 "
                      "nesterov: true }",
                      "averaging { moving_rate: 0.25 local_steps: 8 }"}});
  const auto request = FromProto(Text<v1::JoinRequest>(text));
  ASSERT_THAT(request, IsOk());
  const auto& averaging = std::get<AveragingOptions>(request->optimizer.options);
  EXPECT_EQ(averaging.moving_rate, 0.25);
  EXPECT_EQ(averaging.local_steps, 8u);
  EXPECT_THAT(ToProto(*request), EqualsProto(text));
}

TEST(WireJoinTest, RefusesAveragingOutOfItsDomainAndNamesTheOption) {
  const auto averaging = [](double moving_rate, uint32_t local_steps) {
    return Join([=](auto& request) {
      request.mutable_optimizer()->mutable_averaging()->set_moving_rate(moving_rate);
      request.mutable_optimizer()->mutable_averaging()->set_local_steps(local_steps);
    });
  };
  EXPECT_THAT(averaging(1, 1), IsOk());
  EXPECT_THAT(averaging(0, 1), IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is 0")));
  EXPECT_THAT(averaging(1.5, 1), IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is 1.5")));
  EXPECT_THAT(averaging(std::nan(""), 1),
              IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is nan")));
  EXPECT_THAT(averaging(1, 0), IsError(Reason::kBadOptimizer, HasSubstr("local_steps is 0")));
}

TEST(WireWelcomeTest, ReadsEveryField) {
  const auto welcome = FromProto(Text<v1::Welcome>(kWelcome));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->session, SessionId(7));
  EXPECT_EQ(welcome->job_id, "job-1");
  EXPECT_EQ(welcome->incarnation, Incarnation(3));
  EXPECT_EQ(welcome->step, Step(40));
  EXPECT_TRUE(welcome->initialized);
  EXPECT_EQ(welcome->last_sequence, Sequence(12));
  EXPECT_EQ(welcome->consistency.mode, ConsistencyMode::kBounded);
  EXPECT_EQ(welcome->consistency.quorum, 4u);
  EXPECT_EQ(welcome->consistency.max_staleness, absl::make_optional(2u));
  EXPECT_EQ(welcome->index, 2u);
  EXPECT_EQ(welcome->workers, 5u);
  EXPECT_TRUE(welcome->resumed);
  EXPECT_EQ(welcome->lease, absl::Milliseconds(12500));
  EXPECT_EQ(welcome->pushes_before, 31u);
  EXPECT_EQ(welcome->lost_steps, 6u);
  EXPECT_EQ(welcome->schedule.kind, ScheduleKind::kStep);
  EXPECT_EQ(welcome->schedule.warmup_steps, 5u);
  EXPECT_EQ(welcome->schedule.step_size, 30u);
  EXPECT_EQ(welcome->schedule.gamma, 0.5);
}

TEST(WireWelcomeTest, SurvivesTheRoundTrip) {
  for (const std::string text :
       {kWelcome,
        "session: 1 workers: 1 consistency { mode: SYNC reduction: MEAN order: RANK } lease {} "
        "schedule { kind: CONSTANT warmup_steps: 3 } "
        "servers { address: \"a:1\" } servers { address: \"unix:/b\" } "
        "earlier_launches { pushes: 7 pushes: 0 } earlier_launches { pushes: 3 }",
        "workers: 4294967295 consistency { mode: ASYNC quorum: 4294967295 reduction: MEAN "
        "order: ARRIVAL } lease { seconds: 315576000000 } "
        "schedule { kind: COSINE total_steps: 18446744073709551615 floor: 0.25 }"}) {
    const auto welcome = FromProto(Text<v1::Welcome>(text));
    ASSERT_THAT(welcome, IsOk());
    EXPECT_THAT(ToProto(*welcome), EqualsProto(text));
  }
}

TEST(WireWelcomeTest, RefusesAModeItDoesNotKnow) {
  for (const int mode : {0, 6, -1}) {
    const auto message = Changed<v1::Welcome>(kWelcome, [&](auto& welcome) {
      welcome.mutable_consistency()->set_mode(static_cast<v1::ConsistencyMode>(mode));
    });
    EXPECT_THAT(FromProto(message), RefusesField("consistency.mode", absl::StrCat(mode)));
  }
  EXPECT_THAT(FromProto(v1::Welcome()), RefusesField("consistency.mode", "0"));
}

TEST(WireWelcomeTest, RefusesTermsThatContradictThemselves) {
  EXPECT_THAT(WelcomeWith("mode: SYNC quorum: 2"),
              IsError(Reason::kBadArgument, HasSubstr("quorum is 2 in sync mode")));
  EXPECT_THAT(WelcomeWith("mode: SYNC max_staleness: 1"),
              IsError(Reason::kBadArgument, HasSubstr("max_staleness is 1 in sync mode")));
}

TEST(WireWelcomeTest, RefusesAJobOfNoWorkers) {
  EXPECT_THAT(WelcomeWith("mode: SYNC"), RefusesField("workers", "0, expected at least 1"));
}

TEST(WireWelcomeTest, RefusesALeaseOfLessThanNothing) {
  EXPECT_THAT(FromProto(Changed<v1::Welcome>(
                  kWelcome, [](auto& welcome) { welcome.mutable_lease()->set_seconds(-1); })),
              RefusesField("lease", "-500ms, expected 0 or more"));
}

// ---- The rules of a job ----

TEST(WireConsistencyTest, EveryModeSurvivesTheRoundTrip) {
  for (const std::string text :
       {"mode: SYNC reduction: WEIGHTED_MEAN order: RANK",
        "mode: SYNC reduction: MEAN order: ARRIVAL max_step_wait { seconds: 3 } "
        "on_max_step_wait: EVICT",
        "mode: BACKUP quorum: 7 reduction: MEAN order: ARRIVAL max_step_wait { nanos: 1000 } "
        "on_max_step_wait: PROCEED",
        "mode: BOUNDED quorum: 2 max_staleness: 0 reduction: SUM order: ARRIVAL "
        "discount_stale: true",
        "mode: SSP slack: 4 reduction: MEAN order: ARRIVAL discount_stale: true "
        "max_step_wait { seconds: 1 } on_max_step_wait: WAIT",
        "mode: ASYNC quorum: 1 reduction: MEAN order: ARRIVAL discount_stale: true "
        "inconsistent_reads: true",
        "mode: ASYNC quorum: 1 reduction: MEAN order: ARRIVAL gap_aware: ON "
        "ordered_momentum: OFF divided_momentum: ON"}) {
    const auto consistency = FromProto(Text<v1::Consistency>(text));
    ASSERT_THAT(consistency, IsOk()) << text;
    EXPECT_THAT(ToProto(*consistency), EqualsProto(text));
  }
}

TEST(WireConsistencyTest, ReadsWhatIsLeftOutAsItsDefault) {
  const auto consistency = FromProto(Text<v1::Consistency>("mode: ASYNC"));
  ASSERT_THAT(consistency, IsOk());
  EXPECT_EQ(consistency->quorum, 1u);
  EXPECT_EQ(consistency->max_staleness, absl::nullopt);
  EXPECT_EQ(consistency->reduction, Reduction::kMean);
  EXPECT_EQ(consistency->order, ReductionOrder::kArrival);
  EXPECT_EQ(consistency->gap_aware, RuleChoice::kAuto);
  EXPECT_EQ(consistency->ordered_momentum, RuleChoice::kAuto);
  EXPECT_EQ(consistency->divided_momentum, RuleChoice::kAuto);
  EXPECT_EQ(consistency->max_step_wait, absl::InfiniteDuration());
  EXPECT_EQ(consistency->on_max_step_wait, StepWaitAction::kWait);
}

// It was asked for these rules only, and did not know the other one.
TEST(WireConsistencyTest, RulesThatAnEarlierVersionWasAskedForStayAlone) {
  for (const char* rules : {"gap_aware: OFF ordered_momentum: OFF", "gap_aware: ON"}) {
    const auto old = FromProto(Text<v1::Consistency>(absl::StrCat("mode: ASYNC ", rules)));
    ASSERT_THAT(old, IsOk());
    EXPECT_EQ(old->divided_momentum, RuleChoice::kOff) << rules;
  }
}

TEST(WireConsistencyTest, TellsAStalenessOfNothingFromNoBound) {
  EXPECT_THAT(FromProto(Text<v1::Consistency>("mode: BOUNDED max_staleness: 0")), IsOk());
  EXPECT_THAT(FromProto(Text<v1::Consistency>("mode: BOUNDED")),
              IsError(Reason::kBadArgument, HasSubstr("bounded mode has no max_staleness")));
}

TEST(WireConsistencyTest, RefusesWordsItDoesNotKnowAndNamesTheField) {
  const auto with = [](const std::function<void(v1::Consistency&)>& change) {
    return FromProto(Changed<v1::Consistency>("mode: ASYNC", change));
  };
  for (const int value : {7, -1}) {
    EXPECT_THAT(with([&](auto& c) { c.set_reduction(static_cast<v1::Reduction>(value)); }),
                RefusesField("consistency.reduction", absl::StrCat(value)));
    EXPECT_THAT(with([&](auto& c) { c.set_order(static_cast<v1::ReductionOrder>(value)); }),
                RefusesField("consistency.order", absl::StrCat(value)));
    EXPECT_THAT(
        with([&](auto& c) { c.set_on_max_step_wait(static_cast<v1::StepWaitAction>(value)); }),
        RefusesField("consistency.on_max_step_wait", absl::StrCat(value)));
    EXPECT_THAT(with([&](auto& c) { c.set_gap_aware(static_cast<v1::RuleChoice>(value)); }),
                RefusesField("consistency.gap_aware", absl::StrCat(value)));
  }
}

TEST(WireConsistencyTest, RefusesAWaitOfNoTime) {
  EXPECT_THAT(FromProto(Text<v1::Consistency>("mode: SYNC max_step_wait {}")),
              IsError(Reason::kBadArgument, HasSubstr("max_step_wait is 0")));
  EXPECT_THAT(FromProto(Text<v1::Consistency>("mode: SYNC max_step_wait { nanos: 999 }")),
              IsError(Reason::kBadArgument, HasSubstr("max_step_wait is 999ns")));
}

// Duration's limit; more could not be printed.
TEST(WireConsistencyTest, TellsOfTenThousandYearsAtMost) {
  const auto consistency =
      FromProto(Text<v1::Consistency>("mode: SYNC max_step_wait { seconds: 9223372036854775807 }"));
  ASSERT_THAT(consistency, IsOk());
  EXPECT_EQ(ToProto(*consistency).max_step_wait().seconds(), 315'576'000'000);
  EXPECT_EQ(ToProto(absl::InfiniteDuration()).nanos(), 0);
  EXPECT_EQ(ToProto(-absl::InfiniteDuration()).seconds(), -315'576'000'000);
}

TEST(WireScheduleTest, TellsOnlyWhatItsKindHas) {
  LearningRateSchedule schedule;
  schedule.warmup_steps = 5;
  EXPECT_THAT(ToProto(schedule), EqualsProto("kind: CONSTANT warmup_steps: 5"));
  schedule.kind = ScheduleKind::kStep;
  schedule.step_size = 30;
  schedule.gamma = 0.5;
  EXPECT_THAT(ToProto(schedule),
              EqualsProto("kind: STEP warmup_steps: 5 step_size: 30 gamma: 0.5"));
  schedule.kind = ScheduleKind::kCosine;
  schedule.total_steps = 100;
  schedule.floor = 0.25;
  EXPECT_THAT(ToProto(schedule),
              EqualsProto("kind: COSINE warmup_steps: 5 total_steps: 100 floor: 0.25"));
}

TEST(WireJoinEventTest, TellsWhatHappensToTheJob) {
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kTrainingFinished, Step(90), {}}),
              EqualsProto("training_finished { step: 90 }"));
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kDraining, Step(90), {}}),
              EqualsProto("draining {}"));
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kDraining, Step(90), {}, "the loss rises"}),
              EqualsProto("draining { diverged: 'the loss rises' }"));
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kEvicted, Step(90), {}}), EqualsProto("evicted {}"));
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kPolicyChanged, Step(90), {}}),
              EqualsProto("policy_changed { step: 90 consistency { mode: SYNC reduction: MEAN "
                          "order: ARRIVAL gap_aware: OFF "
                          "ordered_momentum: OFF divided_momentum: OFF } }"));
}

TEST(WireJoinEventTest, IsUnderstood) {
  const auto kind_of = [](const std::string& text) {
    const auto event = FromProto(Text<v1::JoinEvent>(text));
    EXPECT_THAT(event, IsOk()) << text;
    return event.ok() ? event->kind : JobEvent::Kind::kDeserted;
  };
  EXPECT_EQ(kind_of("training_finished { step: 90 }"), JobEvent::Kind::kTrainingFinished);
  EXPECT_EQ(kind_of("draining {}"), JobEvent::Kind::kDraining);
  EXPECT_EQ(kind_of("evicted {}"), JobEvent::Kind::kEvicted);
  const auto diverged = FromProto(Text<v1::JoinEvent>("draining { diverged: 'the loss rises' }"));
  ASSERT_THAT(diverged, IsOk());
  EXPECT_EQ(diverged->diverged, "the loss rises");
  const auto changed = FromProto(
      Text<v1::JoinEvent>("policy_changed { step: 90 consistency { mode: BACKUP quorum: 3 } }"));
  ASSERT_THAT(changed, IsOk());
  EXPECT_EQ(changed->kind, JobEvent::Kind::kPolicyChanged);
  EXPECT_EQ(changed->step, Step(90));
  EXPECT_EQ(changed->consistency.mode, ConsistencyMode::kBackup);
  EXPECT_EQ(changed->consistency.quorum, 3u);
}

TEST(WireJoinEventTest, IsRefusedIfItIsNoneThatAWorkerKnows) {
  EXPECT_THAT(FromProto(v1::JoinEvent()), RefusesField("event", "0"));
  EXPECT_THAT(FromProto(Text<v1::JoinEvent>("welcome {}")), RefusesField("event", "1"));
  EXPECT_THAT(FromProto(Text<v1::JoinEvent>("policy_changed {}")),
              RefusesField("consistency.mode", "0"));
}

constexpr char kEncodings[] = R"(
  push { encoding: "int8" link_bytes_per_second: 1e7 ratio: 3.5
         encode_bytes_per_second: 4e9 decode_bytes_per_second: 8e9 }
  pull { encoding: "float32" link_bytes_per_second: 2e7 ratio: 1 })";

TEST(WirePushTest, TellsWhichEncodingsWereChosen) {
  const std::string text = absl::StrCat(kPushHeader, " encodings {", kEncodings, "}");
  const auto header = FromProto(Text<v1::PushHeader>(text));
  ASSERT_THAT(header, IsOk());
  ASSERT_TRUE(header->encodings.has_value());
  EXPECT_EQ(header->encodings->push.encoding, "int8");
  EXPECT_EQ(header->encodings->push.ratio, 3.5);
  EXPECT_EQ(header->encodings->pull.link_bytes_per_second, 2e7);
  EXPECT_THAT(ToProto(*header), EqualsProto(text));
}

TEST(WirePushTest, RefusesNumbersOfEncodingsThatAreNone) {
  const auto with = [](const std::string& push) {
    return FromProto(
               Text<v1::PushHeader>(absl::StrCat(kPushHeader, " encodings { push {", push, "} }")))
        .status();
  };
  EXPECT_THAT(with("ratio: -1"),
              IsError(Reason::kBadArgument, HasSubstr("encodings: -1, expected")));
  EXPECT_THAT(with("link_bytes_per_second: nan"),
              IsError(Reason::kBadArgument, HasSubstr("expected a number from 0 on")));
  EXPECT_THAT(with(absl::StrCat("encoding: '", std::string(65, 'e'), "'")),
              IsError(Reason::kBadArgument, HasSubstr("a name of 65 bytes, expected at most 64")));
}

TEST(WirePushSummaryTest, SurvivesTheRoundTrip) {
  for (const std::string text : {"samples: 64 loss: 0.5", "samples: 1", "samples: 1 loss: 0",
                                 "samples: 1 running_means { offset: 3 count: 2 decay: 0.5 }",
                                 "samples: 1 changed_options { group: 2 options { sgd { "
                                 "learning_rate: 0.5 momentum: 0.9 } } }",
                                 "samples: 1 clip_norm: 0.5"}) {
    const auto summary = FromProto(Text<v1::PushSummary>(text));
    ASSERT_THAT(summary, IsOk());
    EXPECT_THAT(ToProto(*summary), EqualsProto(text));
  }
}

TEST(WirePushHeaderTest, ReadsEveryField) {
  const auto header = FromProto(Text<v1::PushHeader>(kPushHeader));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->session, SessionId(7));
  EXPECT_EQ(header->sequence, Sequence(13));
  EXPECT_EQ(header->step, Step(41));
  EXPECT_EQ(header->incarnation, Incarnation(3));
  EXPECT_EQ(header->samples, 64u);
  EXPECT_EQ(header->loss, absl::make_optional(0.5f));
}

TEST(WirePushHeaderTest, SurvivesTheRoundTrip) {
  for (const std::string text :
       {kPushHeader, "sequence: 1 samples: 1", "sequence: 1 samples: 1 loss: 0",
        "sequence: 1 samples: 1 attempt: 4294967295",
        "sequence: 1 samples: 1 running_means { count: 3 decay: 1 } "
        "running_means { offset: 3 count: 1 }",
        "sequence: 1 samples: 1 changed_options { options { adamw { learning_rate: 0.5 } } }",
        "sequence: 1 samples: 1 clip_norm: 2",
        "session: 18446744073709551615 sequence: 18446744073709551615 "
        "step: 18446744073709551615 incarnation: 18446744073709551615 samples: 4294967295"}) {
    const auto header = FromProto(Text<v1::PushHeader>(text));
    ASSERT_THAT(header, IsOk());
    EXPECT_THAT(ToProto(*header), EqualsProto(text));
  }
}

TEST(WirePushHeaderTest, RefusesASequenceOfZero) {
  EXPECT_THAT(FromProto(Text<v1::PushHeader>("session: 7 samples: 1")),
              RefusesField("sequence", "0, expected a number from 1 on"));
}

TEST(WirePushHeaderTest, RefusesAGradientOfNoSamples) {
  EXPECT_THAT(FromProto(Text<v1::PushHeader>("session: 7 sequence: 1")),
              RefusesField("samples", "0, expected at least 1"));
}

TEST(WirePushHeaderTest, RefusesRunningMeansThatAreNone) {
  const struct {
    const char* means;
    const char* wrong;
  } cases[] = {
      {"running_means { offset: 3 decay: 0.5 }", "3 to 3 have no element, expected at least one"},
      {"running_means { count: 2 decay: 1.5 }", "0 to 2 have decay 1.5, expected 0 to 1"},
      {"running_means { count: 2 decay: -0.5 }", "0 to 2 have decay -0.5, expected 0 to 1"},
      {"running_means { count: 2 decay: nan }", "0 to 2 have decay nan, expected 0 to 1"},
      {"running_means { count: 2 } running_means { offset: 1 count: 2 }", "1 to 3 begin before 2"},
      {"running_means { offset: 18446744073709551615 count: 2 }", "have no element"},
  };
  for (const auto& c : cases) {
    const std::string header = absl::StrCat("sequence: 1 samples: 1 ", c.means);
    EXPECT_THAT(FromProto(Text<v1::PushHeader>(header)),
                IsError(Reason::kBadArgument, HasSubstr(c.wrong)));
    EXPECT_THAT(FromProto(Text<v1::PushSummary>(absl::StrCat("samples: 1 ", c.means))),
                IsError(Reason::kBadArgument, HasSubstr(c.wrong)));
  }
}

// Those of a step are the union of its gradients', and may be more than one push may name.
TEST(WirePushHeaderTest, RefusesMoreRunningMeansThanAPushMayName) {
  v1::PushHeader header = Text<v1::PushHeader>("sequence: 1 samples: 1");
  for (uint64_t i = 0; i < 65'537; ++i) {
    v1::RunningMean& mean = *header.add_running_means();
    mean.set_offset(i);
    mean.set_count(1);
  }
  EXPECT_THAT(FromProto(header),
              RefusesField("running_means", "a list of 65537, expected at most 65536"));
  EXPECT_THAT(ReadRunningMeans(header.running_means()), IsOk());
  header.mutable_running_means()->RemoveLast();
  EXPECT_THAT(FromProto(header), IsOk());
}

TEST(WirePushOutcomeTest, ReadsEveryField) {
  const auto outcome = FromProto(Text<v1::PushGradientsResponse>(kDuplicateResponse));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->disposition, Disposition::kDuplicate);
  EXPECT_EQ(outcome->step, Step(42));
  EXPECT_EQ(outcome->incarnation, Incarnation(3));
  EXPECT_EQ(outcome->staleness, 2u);
  EXPECT_EQ(outcome->first_disposition, absl::make_optional(Disposition::kStaleDropped));
}

TEST(WirePushOutcomeTest, EveryDispositionSurvivesTheRoundTrip) {
  for (const std::string text :
       {kPushResponse, kDuplicateResponse, "disposition: ACCEPTED", "disposition: STALE_DROPPED",
        "disposition: SKIPPED", "disposition: PART_TAKEN",
        "disposition: DUPLICATE first_disposition: SKIPPED",
        "disposition: DUPLICATE first_disposition: ACCEPTED",
        "disposition: DUPLICATE first_disposition: APPLIED"}) {
    const auto outcome = FromProto(Text<v1::PushGradientsResponse>(text));
    ASSERT_THAT(outcome, IsOk());
    EXPECT_THAT(ToProto(*outcome), EqualsProto(text));
  }
}

TEST(WirePushOutcomeTest, RefusesDispositionsItDoesNotKnow) {
  for (const int value : {0, 7, -1}) {
    const auto unknown = static_cast<v1::Disposition>(value);
    v1::PushGradientsResponse response;
    response.set_disposition(unknown);
    EXPECT_THAT(FromProto(response), RefusesField("disposition", absl::StrCat(value)));
    response.set_disposition(v1::DUPLICATE);
    response.set_first_disposition(unknown);
    EXPECT_THAT(FromProto(response), RefusesField("first_disposition", absl::StrCat(value)));
  }
}

TEST(WirePushOutcomeTest, HasAFirstDispositionForDuplicatesOnly) {
  const auto outcome = FromProto(
      Text<v1::PushGradientsResponse>("disposition: APPLIED first_disposition: ACCEPTED"));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_FALSE(outcome->first_disposition.has_value());
}

TEST(WirePullTest, RequestsSurviveTheRoundTrip) {
  for (const std::string text :
       {"session: 7 min_step: 41 have_step: 40", "session: 7", "session: 7 have_step: 0",
        "session: 7 after: 12", "session: 7 after: 0", "session: 7 consistent: true",
        "session: 7 number: 18446744073709551615",
        "min_step: 18446744073709551615 have_step: 18446744073709551615"}) {
    EXPECT_THAT(ToProto(FromProto(Text<v1::PullParamsRequest>(text))), EqualsProto(text));
  }
}

TEST(WirePullTest, ReadsEveryFieldOfARequest) {
  const PullRequest request =
      FromProto(Text<v1::PullParamsRequest>("session: 7 min_step: 41 have_step: 40 after: 12"));
  EXPECT_EQ(request.session, SessionId(7));
  EXPECT_EQ(request.min_step, Step(41));
  EXPECT_EQ(request.have_step, absl::make_optional(Step(40)));
  EXPECT_EQ(request.after, absl::make_optional(Sequence(12)));
}

TEST(WirePullTest, HeadersSurviveTheRoundTrip) {
  const std::string text = "step: 41 incarnation: 3 not_modified: true";
  const PullHeader header = FromProto(Text<v1::PullHeader>(text));
  EXPECT_EQ(header.step, Step(41));
  EXPECT_EQ(header.incarnation, Incarnation(3));
  EXPECT_TRUE(header.not_modified);
  EXPECT_FALSE(header.inconsistent);
  EXPECT_THAT(ToProto(header), EqualsProto(text));
  EXPECT_FALSE(header.last);
  EXPECT_TRUE(FromProto(Text<v1::PullHeader>("last: true")).last);
  EXPECT_THAT(ToProto(FromProto(Text<v1::PullHeader>("last: true"))), EqualsProto("last: true"));
  EXPECT_TRUE(FromProto(Text<v1::PullHeader>("inconsistent: true")).inconsistent);
  EXPECT_THAT(ToProto(FromProto(Text<v1::PullHeader>("inconsistent: true"))),
              EqualsProto("inconsistent: true"));
}

}  // namespace
}  // namespace sluice
