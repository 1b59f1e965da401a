#include "common/wire.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
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
  host: "node7" pid: 4242 index: 2
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
  consistency { mode: ASYNC quorum: 4 max_staleness: 2 } index: 2 workers: 5)";
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
  EXPECT_EQ(request->optimizer.learning_rate, 0.05);
  EXPECT_EQ(request->optimizer.momentum, 0.9);
  EXPECT_EQ(request->optimizer.dampening, 0);
  EXPECT_EQ(request->optimizer.weight_decay, 0.0001);
  EXPECT_TRUE(request->optimizer.nesterov);
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
  for (const int value : {0, 5, -1, 1000}) {
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

TEST(WireWelcomeTest, ReadsEveryField) {
  const auto welcome = FromProto(Text<v1::Welcome>(kWelcome));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->session, SessionId(7));
  EXPECT_EQ(welcome->job_id, "job-1");
  EXPECT_EQ(welcome->incarnation, Incarnation(3));
  EXPECT_EQ(welcome->step, Step(40));
  EXPECT_TRUE(welcome->initialized);
  EXPECT_EQ(welcome->last_sequence, Sequence(12));
  EXPECT_EQ(welcome->consistency.mode, ConsistencyMode::kAsync);
  EXPECT_EQ(welcome->consistency.quorum, 4u);
  EXPECT_EQ(welcome->consistency.max_staleness, absl::make_optional(2u));
  EXPECT_EQ(welcome->index, 2u);
  EXPECT_EQ(welcome->workers, 5u);
}

TEST(WireWelcomeTest, SurvivesTheRoundTrip) {
  for (const std::string text :
       {kWelcome, "session: 1 workers: 1 consistency { mode: SYNC quorum: 4 }",
        "workers: 4294967295 consistency { mode: ASYNC quorum: 4294967295 }",
        "workers: 1 consistency { mode: SYNC quorum: 1 max_staleness: 0 }"}) {
    const auto welcome = FromProto(Text<v1::Welcome>(text));
    ASSERT_THAT(welcome, IsOk());
    EXPECT_THAT(ToProto(*welcome), EqualsProto(text));
  }
}

TEST(WireWelcomeTest, RefusesAModeItDoesNotKnow) {
  for (const int mode : {0, 3, -1}) {
    const auto message = Changed<v1::Welcome>(kWelcome, [&](auto& welcome) {
      welcome.mutable_consistency()->set_mode(static_cast<v1::ConsistencyMode>(mode));
    });
    EXPECT_THAT(FromProto(message), RefusesField("consistency.mode", absl::StrCat(mode)));
  }
  EXPECT_THAT(FromProto(v1::Welcome()), RefusesField("consistency.mode", "0"));
}

TEST(WireWelcomeTest, RefusesTermsThatContradictThemselves) {
  EXPECT_THAT(WelcomeWith("mode: SYNC quorum: 0"),
              IsError(Reason::kBadArgument, HasSubstr("quorum is 0")));
  EXPECT_THAT(WelcomeWith("mode: SYNC quorum: 1 max_staleness: 1"),
              IsError(Reason::kBadArgument, HasSubstr("max_staleness is 1 in sync mode")));
}

TEST(WireWelcomeTest, RefusesAJobOfNoWorkers) {
  EXPECT_THAT(WelcomeWith("mode: SYNC quorum: 1"),
              RefusesField("workers", "0, expected at least 1"));
}

TEST(WireJoinEventTest, TellsWhatHappensToTheJob) {
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kTrainingFinished, Step(90)}),
              EqualsProto("training_finished { step: 90 }"));
  EXPECT_THAT(ToProto(JobEvent{JobEvent::Kind::kDraining, Step(90)}), EqualsProto("draining {}"));
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
        "disposition: DUPLICATE first_disposition: ACCEPTED",
        "disposition: DUPLICATE first_disposition: APPLIED"}) {
    const auto outcome = FromProto(Text<v1::PushGradientsResponse>(text));
    ASSERT_THAT(outcome, IsOk());
    EXPECT_THAT(ToProto(*outcome), EqualsProto(text));
  }
}

TEST(WirePushOutcomeTest, RefusesDispositionsItDoesNotKnow) {
  for (const int value : {0, 5, -1}) {
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
        "min_step: 18446744073709551615 have_step: 18446744073709551615"}) {
    EXPECT_THAT(ToProto(FromProto(Text<v1::PullParamsRequest>(text))), EqualsProto(text));
  }
}

TEST(WirePullTest, ReadsEveryFieldOfARequest) {
  const PullRequest request =
      FromProto(Text<v1::PullParamsRequest>("session: 7 min_step: 41 have_step: 40"));
  EXPECT_EQ(request.session, SessionId(7));
  EXPECT_EQ(request.min_step, Step(41));
  EXPECT_EQ(request.have_step, absl::make_optional(Step(40)));
}

TEST(WirePullTest, HeadersSurviveTheRoundTrip) {
  const std::string text = "step: 41 incarnation: 3 not_modified: true";
  const PullHeader header = FromProto(Text<v1::PullHeader>(text));
  EXPECT_EQ(header.step, Step(41));
  EXPECT_EQ(header.incarnation, Incarnation(3));
  EXPECT_TRUE(header.not_modified);
  EXPECT_THAT(ToProto(header), EqualsProto(text));
}

TEST(WireChunkTest, IsLittleEndianAndEndsWithItsPayload) {
  v1::TensorChunk chunk;
  ToProto(5, {1.0f, -2.0f}, &chunk);
  EXPECT_EQ(chunk.SerializeAsString(), std::string("\x08\x05"           // offset: 5
                                                   "\x7a\x08"           // payload of 8 bytes
                                                   "\x00\x00\x80\x3f"   // 1
                                                   "\x00\x00\x00\xc0",  // −2
                                                   12));
}

TEST(WireChunkTest, KeepsEveryBitOfItsElements) {
  const std::vector<float> elements = {0.0f, -0.0f, 1e-45f, std::nanf("7"), -HUGE_VALF, 3.4e38f};
  v1::TensorChunk chunk;
  ToProto(kLargest, elements, &chunk);
  EXPECT_EQ(chunk.offset(), kLargest);
  ASSERT_EQ(chunk.payload().size(), elements.size() * 4);
  EXPECT_EQ(std::memcmp(chunk.payload().data(), elements.data(), chunk.payload().size()), 0);
  EXPECT_THAT(ElementsIn(chunk), IsOkAndHolds(elements.size()));
}

TEST(WireChunkTest, ReplacesWhatTheMessageHeld) {
  v1::TensorChunk chunk;
  ToProto(9, {1.0f, 2.0f, 3.0f}, &chunk);
  ToProto(0, {}, &chunk);
  EXPECT_THAT(chunk, EqualsProto(""));
  EXPECT_THAT(ElementsIn(chunk), IsOkAndHolds(0u));
}

TEST(WireChunkTest, AFullChunkIsOneMebibyteAndFitsGrpcsLimit) {
  const std::vector<float> elements(kChunkElements);
  v1::PushGradientsRequest request;
  ToProto(kLargest, elements, request.mutable_chunk());
  EXPECT_EQ(request.chunk().payload().size(), size_t{1} << 20);
  EXPECT_LT(request.ByteSizeLong(), size_t{4} << 20);
}

TEST(WireChunkTest, RefusesAPayloadOfBrokenElements) {
  for (const size_t bytes : {1, 2, 3, 5, 4095}) {
    v1::TensorChunk chunk;
    chunk.set_offset(100);
    chunk.set_payload(std::string(bytes, 'x'));
    EXPECT_THAT(
        ElementsIn(chunk),
        IsError(Reason::kBadChunk, HasSubstr(absl::StrCat("chunk at offset 100 has ", bytes,
                                                          " bytes, expected a multiple of 4"))));
  }
}

}  // namespace
}  // namespace sluice
