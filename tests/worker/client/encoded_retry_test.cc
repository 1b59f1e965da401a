// Errors on a push's way change no bit of the parameters, whatever the encoding: what earlier
// pushes left over is added once.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"
#include "worker/compression/momentum_correction.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSize = 300000;
constexpr int kRounds = 6;

Values Gradient(int round) {
  Values values(kSize);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * static_cast<size_t>(round)));
  }
  return values;
}

JoinRequest RequestOf(uint64_t size, double momentum = 0) {
  JoinRequest request;
  request.worker = "a";
  request.process_nonce = ProcessNonce(7);
  request.layout = ParametersOnly(size);
  request.optimizer.options = SgdOptions{1.0, momentum};
  return request;
}

GradientEncoding EncodingOf(const std::string& choice) {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice(choice);
  return encoding;
}

class EncodedRetryTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Trains for some rounds, and returns the parameters. Before each round `fail` prepares an error.
  Values Train(const std::function<void(int round, ShardConnection& connection)>& fail,
               bool early = false) {
    ServerWorld world(Sync(1), ParametersOnly(kSize));
    auto connection = std::make_unique<ShardConnection>(world.shard());
    ShardConnection& twin = *connection;
    ParameterClient client(std::move(connection), EncodingOf(GetParam()));
    Values parameters(kSize, 0.0f);
    EXPECT_THAT(client.Join(RequestOf(kSize, 0.5), absl::MakeSpan(parameters)), IsOk());
    for (int round = 1; round <= kRounds; ++round) {
      fail(round, twin);
      const SharedFloats gradient = Share(Gradient(round));
      if (early) {
        client.SendEarly(200000, gradient.Part(200000, 100000));
        client.SendEarly(0, gradient.Part(0, 1000));
      }
      EXPECT_THAT(client.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(parameters)), IsOk());
    }
    EXPECT_THAT(client.Leave({}), IsOk());
    return parameters;
  }

  static void Nothing(int /*round*/, ShardConnection& /*connection*/) {}
};

TEST_P(EncodedRetryTest, AnAnswerThatIsLostChangesNothing) {
  const Values expected = Train(Nothing);
  EXPECT_EQ(Train([](int, ShardConnection& connection) { connection.LoseAnswers(1); }), expected);
}

TEST_P(EncodedRetryTest, APushThatIsCutChangesNothing) {
  const Values expected = Train(Nothing);
  EXPECT_EQ(Train([](int round, ShardConnection& connection) {
              if (round % 2 == 0) connection.CutPushes(1);
            }),
            expected);
}

TEST_P(EncodedRetryTest, APushThatNeverArrivesChangesNothing) {
  const Values expected = Train(Nothing);
  EXPECT_EQ(
      Train([](int round, ShardConnection& connection) { connection.BreakPushes(round % 3); }),
      expected);
}

TEST_P(EncodedRetryTest, PartsThatLeaveEarlyChangeNothing) {
  const Values expected = Train(Nothing);
  EXPECT_EQ(Train(Nothing, true), expected);
  EXPECT_EQ(Train([](int, ShardConnection& connection) { connection.CutPushes(1); }, true),
            expected);
}

INSTANTIATE_TEST_SUITE_P(Encodings, EncodedRetryTest,
                         ::testing::Values("float32/planes/zstd", "float32/nonzero/pdict",
                                           "bfloat16", "int8:stochastic", "sign", "sign:momentum",
                                           "top-k:0.01", "random-k:0.01",
                                           "top-k:0.01:momentum:warmup=3"));

// Joins with an encoding and an optimizer, and pushes ones three times.
absl::Status Train3(const std::string& encoding, const OptimizerOptions& options,
                    Values* parameters, ServerWorld& world) {
  ParameterClient client(std::make_unique<ShardConnection>(world.shard()), EncodingOf(encoding));
  JoinRequest request = RequestOf(parameters->size());
  request.optimizer.options = options;
  const absl::Status joined = client.Join(request, absl::MakeSpan(*parameters));
  if (!joined.ok()) return joined;
  for (int round = 1; round <= 3; ++round) {
    const auto done = client.PushPull(Share(Values(parameters->size(), 1.0f)), 1, absl::nullopt,
                                      absl::MakeSpan(*parameters));
    if (!done.ok()) return done.status();
  }
  return client.Leave({});
}

TEST(MomentumCorrectionTest, MomentumIsAppliedOnceOnTheWorkerInPlaceOfTheServer) {
  constexpr uint32_t kFew = 100;  // a small tensor: sent as it is
  Values ends[2];
  const char* const encodings[] = {"none", "top-k:0.01:momentum"};
  for (int i = 0; i < 2; ++i) {
    ServerWorld world(Sync(1), ParametersOnly(kFew));
    ends[i].assign(kFew, 0.0f);
    EXPECT_THAT(Train3(encodings[i], SgdOptions{1.0, 0.5}, &ends[i], world), IsOk());
  }
  EXPECT_EQ(ends[0], Values(kFew, -(1 + 1.5f + 1.75f)));
  EXPECT_EQ(ends[1], ends[0]);
}

TEST(MomentumCorrectionTest, RefusesOptimizersWhoseMomentumItCannotTakeOver) {
  SgdOptions nesterov{0.1, 0.9};
  nesterov.nesterov = true;
  SgdOptions decay{0.1, 0.9};
  decay.weight_decay = 0.5;
  const std::pair<OptimizerOptions, const char*> refused[] = {
      {AdamOptions(), "found adam"},
      {SgdOptions{0.1}, "found a momentum of 0"},
      {nesterov, "found Nesterov"},
      {decay, "found a weight decay of 0.5: change that, or leave :momentum out"}};
  for (const auto& [options, found] : refused) {
    ServerWorld world(Sync(1), ParametersOnly(100));
    Values parameters(100, 0.0f);
    EXPECT_THAT(Train3("top-k:momentum", options, &parameters, world),
                IsError(Reason::kBadOptimizer, HasSubstr(found)));
  }
}

std::string Advice(const std::string& choice, const OptimizerOptions& options) {
  return AdviceOnMomentum(*ParseEncodingChoice(choice), OptimizerConfig{options});
}

TEST(EncodedPushTest, MomentumIsAdvisedWhereTheServerHasWhatTheWorkerCould) {
  const SgdOptions sgd{0.1, 0.9};
  EXPECT_THAT(Advice("sign", sgd), HasSubstr("--push-encoding=sign:momentum"));
  EXPECT_THAT(Advice("top-k:0.1:warmup=9,fc=int8", sgd),
              HasSubstr("--push-encoding=top-k:0.1:momentum:warmup=9,fc=int8"));
  for (const char* choice : {"sign:momentum", "int8", "none", "auto", "random-k"}) {
    EXPECT_EQ(Advice(choice, sgd), "") << choice;
  }
  EXPECT_EQ(Advice("sign", SgdOptions{0.1}), "");
  EXPECT_EQ(Advice("sign", AdamOptions()), "");
}

TEST(EncodedPushTest, TheAdviceIsInTheLog) {
  ServerWorld world(Sync(1), ParametersOnly(3));
  Values parameters(3, 0.0f);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(Train3("sign", SgdOptions{1.0, 0.5}, &parameters, world), IsOk());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("a: with --push-encoding=sign training loses less accuracy"));
}

// The 2 is left over at a learning rate of 1, and is sent with the second push, at a rate of 1/2.
TEST(EncodedPushTest, WhatIsLeftOverWeighsWhatItDidThoughTheLearningRateFalls) {
  constexpr uint32_t kSmall = 2000;
  ShardOptions options = Sync(1);
  options.schedule.kind = ScheduleKind::kStep;
  options.schedule.step_size = 1;
  options.schedule.gamma = 0.5;
  ServerWorld world(options, ParametersOnly(kSmall));
  ParameterClient client(std::make_unique<ShardConnection>(world.shard()),
                         EncodingOf("top-k:0.001"));
  Values parameters(kSmall, 0.0f);
  ASSERT_THAT(client.Join(RequestOf(kSmall), absl::MakeSpan(parameters)), IsOk());
  Values gradient(kSmall, 0.0f);
  gradient[0] = 8;
  gradient[1] = 3;
  gradient[2] = 2;  // top-k sends two
  for (const Values& next : {gradient, Values(kSmall, 0.0f)}) {
    ASSERT_THAT(client.PushPull(Share(next), 1, absl::nullopt, absl::MakeSpan(parameters)), IsOk());
  }
  EXPECT_EQ(parameters[0], -8.0f);
  EXPECT_EQ(parameters[1], -3.0f);
  EXPECT_EQ(parameters[2], -2.0f);
  EXPECT_THAT(client.Leave({}), IsOk());
}

// Momentum applies what is pushed at the rates of later steps, too.
TEST(EncodedPushTest, WithMomentumWhatIsLeftOverIsNotScaled) {
  constexpr uint32_t kSmall = 2000;
  ShardOptions options = Sync(1);
  options.schedule.kind = ScheduleKind::kStep;
  options.schedule.step_size = 1;
  options.schedule.gamma = 0.5;
  ServerWorld world(options, ParametersOnly(kSmall));
  ParameterClient client(std::make_unique<ShardConnection>(world.shard()),
                         EncodingOf("top-k:0.001"));
  Values parameters(kSmall, 0.0f);
  ASSERT_THAT(client.Join(RequestOf(kSmall, 0.5), absl::MakeSpan(parameters)), IsOk());
  Values gradient(kSmall, 0.0f);
  gradient[0] = 8;
  gradient[1] = 3;
  gradient[2] = 2;  // top-k sends two
  for (const Values& next : {gradient, Values(kSmall, 0.0f)}) {
    ASSERT_THAT(client.PushPull(Share(next), 1, absl::nullopt, absl::MakeSpan(parameters)), IsOk());
  }
  EXPECT_EQ(parameters[2], -1.0f);  // the second step has half the rate
  EXPECT_THAT(client.Leave({}), IsOk());
}

// Fifty rates, each a tenth of the one before.
TEST(EncodedPushTest, WhatIsLeftOverStaysFiniteHoweverSmallTheLearningRateIs) {
  constexpr uint32_t kSmall = 2000;
  for (const OptimizerOptions& optimizer : AllOptimizers()) {
    if (WorkersStep(optimizer) || IsOfProgram(optimizer)) continue;
    SCOPED_TRACE(OptimizerName(optimizer));
    ShardOptions options = Sync(1);
    options.schedule.kind = ScheduleKind::kStep;
    options.schedule.step_size = 1;
    options.schedule.gamma = 0.1;
    ServerWorld world(options, ParametersOnly(kSmall));
    ParameterClient client(std::make_unique<ShardConnection>(world.shard()),
                           EncodingOf("top-k:0.001"));
    Values parameters(kSmall, 0.0f);
    JoinRequest request = RequestOf(kSmall);
    request.optimizer.options = optimizer;
    ASSERT_THAT(client.Join(request, absl::MakeSpan(parameters)), IsOk());
    const Values gradient(kSmall, 1.0f);
    for (int push = 0; push < 50; ++push) {
      ASSERT_THAT(client.PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(parameters)),
                  IsOk());
    }
    EXPECT_THAT(client.Leave({}), IsOk());
  }
}

}  // namespace
}  // namespace sluice
