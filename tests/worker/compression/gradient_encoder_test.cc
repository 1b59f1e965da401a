#include "worker/compression/gradient_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Notes what is sent, and decodes it.
class Receiver final : public OutgoingPush {
 public:
  explicit Receiver(size_t size) : values(size) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    if (ended) return false;
    std::copy(part.values.begin(), part.values.end(), values.begin() + offset);
    payloads.push_back("plain");
    return true;
  }

  bool SendEncoded(const EncodedChunk& chunk, uint64_t /*taken*/) override {
    if (ended) return false;
    EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(values).subspan(chunk.offset, chunk.how.count),
                             BuiltinTransforms()),
                IsOk());
    payloads.emplace_back(chunk.payload);
    return true;
  }

  absl::StatusOr<PushOutcome> Finish(const PushSummary&) override { return PushOutcome(); }

  void Cancel() override { ended = true; }

  Transfer transfer() const override { return {}; }

  Values values;
  std::vector<std::string> payloads;
  bool ended = false;
};

Values Gradient(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Values values(size);
  for (float& value : values) value = normal(random);
  return values;
}

// A worker's encoder of one tensor of 2000 parameters.
class GradientEncoderTest : public ::testing::Test {
 protected:
  static constexpr size_t kSize = 2000;

  void Use(const std::string& encoding, bool error_feedback = true,
           const Layout& layout = ParametersOnly(kSize), const std::string& worker = "a") {
    GradientEncoding options;
    options.choice = *ParseEncodingChoice(encoding);
    options.error_feedback = error_feedback;
    options.momentum = 0.5f;
    encoder_.emplace(layout, options, worker);
    push_ = Sequence();
  }

  // Makes the next push, and returns what arrives.
  Receiver Push(const Values& gradient, bool counted = true) {
    Receiver receiver = Begin(gradient);
    encoder_->End(counted);
    return receiver;
  }

  Receiver Begin(const Values& gradient) {
    push_ = push_.Next();
    encoder_->Begin(push_, step_, learning_rate_);
    return Send(gradient);
  }

  Receiver Send(const Values& gradient) {
    Receiver receiver(gradient.size());
    GradientEncoder::Sent sent = encoder_->NothingSent();
    EXPECT_TRUE(encoder_->Send(0, Share(gradient), receiver, sent));
    EXPECT_THAT(sent[0].CheckComplete(), IsOk());
    return receiver;
  }

  absl::optional<GradientEncoder> encoder_;
  Sequence push_;
  Step step_;
  double learning_rate_ = 0;
};

const char* const kLossy[] = {"float16", "bfloat16",   "int8",          "int8:stochastic",
                              "sign",    "top-k:0.05", "random-k:0.05", "low-rank:1"};

// The relative error of the sum of all that arrived.
double RelativeError(const std::vector<double>& sums, const Values& gradient, int pushes) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double pushed = pushes * static_cast<double>(gradient[i]);
    error += (sums[i] - pushed) * (sums[i] - pushed);
    norm += pushed * pushed;
  }
  return std::sqrt(error / norm);
}

// What is missing does not grow, so its share falls with the number of pushes.
TEST_F(GradientEncoderTest, WhatIsLostOfOnePushComesWithTheNext) {
  for (const char* encoding : kLossy) {
    Use(encoding);
    const Values gradient = Gradient(kSize);
    std::vector<double> sums(kSize);
    double at_half = 0;
    constexpr int kPushes = 800;
    for (int push = 1; push <= kPushes; ++push) {
      const Receiver receiver = Push(gradient);
      for (size_t i = 0; i < kSize; ++i) sums[i] += receiver.values[i];
      if (push == kPushes / 2) at_half = RelativeError(sums, gradient, push);
    }
    const double at_end = RelativeError(sums, gradient, kPushes);
    EXPECT_LT(at_end, 0.1) << encoding;
    EXPECT_LT(at_end, 0.75 * at_half + 1e-6) << encoding;
  }
}

TEST_F(GradientEncoderTest, WithoutErrorFeedbackItIsLost) {
  Use("top-k:0.05", false);
  const Values gradient = Gradient(kSize);
  const Values first = Push(gradient).values;
  for (int push = 0; push < 10; ++push) EXPECT_EQ(Push(gradient).values, first);
}

TEST_F(GradientEncoderTest, APushHasTheSameBytesHoweverOftenItIsSent) {
  for (const char* encoding : kLossy) {
    Use(encoding);
    Push(Gradient(kSize, 1));
    const Values gradient = Gradient(kSize, 2);
    const auto payloads = Begin(gradient).payloads;
    EXPECT_EQ(Send(gradient).payloads, payloads) << encoding;
    EXPECT_EQ(Send(gradient).payloads, payloads) << encoding;
  }
}

// Low-rank begins with what it made of the push before, so another start has other bytes.
TEST_F(GradientEncoderTest, APushOfAMatrixHasTheSameBytesHoweverOftenItIsSent) {
  LayoutRange matrix;
  matrix.name = "w";
  matrix.shape = {40, 50};
  matrix.length = kSize;
  Use("low-rank:2", true, *Layout::Create({matrix}));
  Push(Gradient(kSize, 1));
  const Values gradient = Gradient(kSize, 2);
  const auto payloads = Begin(gradient).payloads;
  EXPECT_THAT(payloads, Not(Contains("plain")));
  EXPECT_EQ(Send(gradient).payloads, payloads);
  EXPECT_EQ(Send(gradient).payloads, payloads);
}

TEST_F(GradientEncoderTest, AWholeRunIsTheSameTwice) {
  for (const char* encoding : kLossy) {
    std::vector<std::vector<std::string>> runs[2];
    for (auto& run : runs) {
      Use(encoding);
      for (uint32_t push = 0; push < 5; ++push) {
        run.push_back(Push(Gradient(kSize, push)).payloads);
      }
    }
    EXPECT_EQ(runs[0], runs[1]) << encoding;
  }
}

TEST_F(GradientEncoderTest, WorkersAndPushesDrawDifferently) {
  const Values gradient = Gradient(kSize);
  Use("random-k:0.05", false);
  const auto first = Push(gradient).payloads;
  EXPECT_NE(Push(gradient).payloads, first);
  Use("random-k:0.05", false, ParametersOnly(kSize), "b");
  EXPECT_NE(Push(gradient).payloads, first);
}

TEST_F(GradientEncoderTest, APushThatDidNotCountLeavesNothingOver) {
  Use("top-k:0.05");
  const Values kept = Gradient(kSize, 1);
  const Values dropped = Gradient(kSize, 2);
  const Values next = Gradient(kSize, 3);
  Push(kept);
  const Values expected = Push(next, false).values;
  Push(dropped, false);
  EXPECT_EQ(Push(next, false).values, expected);
}

// What was left over at a large rate must not weigh less at a small one.
TEST_F(GradientEncoderTest, WhatIsLeftOverFollowsTheLearningRate) {
  Use("top-k:0.001");
  learning_rate_ = 0.5;
  Values gradient(kSize, 0.0f);
  gradient[0] = 8;
  gradient[1] = 3;
  gradient[2] = 2;
  Push(gradient);  // sends 8 and 3
  learning_rate_ = 0.125;
  const Values received = Push(Values(kSize, 0.0f)).values;
  EXPECT_EQ(received[2], 8.0f);
}

TEST_F(GradientEncoderTest, ALearningRateThatIsUnknownChangesNothing) {
  Use("top-k:0.001");
  learning_rate_ = 0.5;
  Values gradient(kSize, 0.0f);
  gradient[0] = 8;
  gradient[1] = 3;
  gradient[2] = 2;
  Push(gradient);
  learning_rate_ = 0;
  EXPECT_EQ(Push(Values(kSize, 0.0f)).values[2], 2.0f);
}

TEST_F(GradientEncoderTest, WhatIsNotFiniteIsSentAsItIsAndForgotten) {
  Use("top-k:0.05");
  const Values next = Gradient(kSize, 3);
  Push(Gradient(kSize, 1));
  const Values expected = Push(next, false).values;
  Values bad = Gradient(kSize, 2);
  bad[1234] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Push(bad, false).values[1234]));
  EXPECT_EQ(Push(next, false).values, expected);
}

TEST_F(GradientEncoderTest, AChunkThatIsNotWholeYetComesLater) {
  const Layout layout = LayoutOf({{"a", 2000}, {"small", 10}, {"b", 2000}});
  const Values gradient = Gradient(4010);
  Use("top-k:0.05", true, layout);
  const auto at_once = Push(gradient).payloads;

  Use("top-k:0.05", true, layout);
  encoder_->Begin(Sequence(1), Step(), 0);
  Receiver receiver(gradient.size());
  GradientEncoder::Sent sent = encoder_->NothingSent();
  const SharedFloats all = Share(gradient);
  ASSERT_TRUE(encoder_->Send(1500, all.Part(1500, 1000), receiver, sent));
  EXPECT_THAT(receiver.payloads, ElementsAre("plain"));
  EXPECT_EQ(sent[0].covered(), 10u);
  ASSERT_TRUE(encoder_->Send(0, all, receiver, sent));
  EXPECT_THAT(receiver.payloads, ElementsAre("plain", at_once[0], at_once[2]));
}

TEST_F(GradientEncoderTest, AChunkThatComesInPartsIsSentWithTheLastOfThem) {
  const Layout layout = LayoutOf({{"a", 2000}, {"b", 2000}});
  const Values gradient = Gradient(4000);
  Use("top-k:0.05", true, layout);
  const auto at_once = Push(gradient).payloads;

  Use("top-k:0.05", true, layout);
  encoder_->Begin(Sequence(1), Step(), 0);
  Receiver receiver(gradient.size());
  GradientEncoder::Sent sent = encoder_->NothingSent();
  const SharedFloats all = Share(gradient);
  ASSERT_TRUE(encoder_->SendEarly(3000, all.Part(3000, 1000), receiver, sent));
  ASSERT_TRUE(encoder_->SendEarly(0, all.Part(0, 1000), receiver, sent));
  EXPECT_THAT(receiver.payloads, IsEmpty());
  ASSERT_TRUE(encoder_->SendEarly(1500, all.Part(1500, 1500), receiver, sent));
  EXPECT_THAT(receiver.payloads, ElementsAre(at_once[1]));
  ASSERT_TRUE(encoder_->SendEarly(1000, all.Part(1000, 500), receiver, sent));
  EXPECT_THAT(receiver.payloads, ElementsAre(at_once[1], at_once[0]));
  EXPECT_THAT(sent[0].CheckComplete(), IsOk());
}

TEST_F(GradientEncoderTest, StatisticsAndSmallTensorsAreSentAsTheyAre) {
  const Layout layout = LayoutOf({{"small", 10}, {"mean", 2000, RangeKind::kStatistic}});
  const Values gradient = Gradient(2010);
  Use("sign", true, layout);
  const Receiver receiver = Push(gradient);
  EXPECT_THAT(receiver.payloads, ElementsAre("plain"));
  EXPECT_EQ(receiver.values, gradient);
}

// 8 and 3 are sent of what begins with 8, 3, 2 by top-k.
Values FewLarge(size_t size) {
  Values gradient(size, 0.0f);
  gradient[0] = 8;
  gradient[1] = 3;
  gradient[2] = 2;
  return gradient;
}

TEST_F(GradientEncoderTest, AChangeOfTheEncodingKeepsWhatIsLeftOver) {
  Use("auto:top-k:0.001,int8,float32/planes/zstd");
  for (const char* next : {"int8", "float32/planes/zstd", "float32"}) {
    encoder_->Use(*ParseEncoding("top-k:0.001"), {});
    Push(FewLarge(kSize));
    encoder_->Use(*ParseEncoding(next), {});
    EXPECT_EQ(Push(Values(kSize, 0.0f)).values[2], 2.0f) << next;
    encoder_->Use(Encoding(), {});
    EXPECT_EQ(Push(Values(kSize, 0.0f)).values, Values(kSize, 0.0f)) << next;
  }
}

TEST_F(GradientEncoderTest, AChunkThatItIsNotWorthForIsSentAsItIsWithWhatIsLeftOver) {
  Use("auto:top-k:0.001");
  encoder_->Use(*ParseEncoding("top-k:0.001"), {});
  Push(FewLarge(kSize));
  encoder_->Use(*ParseEncoding("top-k:0.001"), {true});
  Values expected = FewLarge(kSize);
  expected[2] = 4;
  EXPECT_EQ(Push(FewLarge(kSize)).values, expected);
}

TEST_F(GradientEncoderTest, WithLosslessEncodingsWhatIsPlainIsSentInOneRun) {
  Use("auto", true, LayoutOf({{"a", 2000}, {"b", 2000}, {"c", 2000}}));
  const Values gradient = Gradient(6000);
  EXPECT_THAT(Push(gradient).payloads, ElementsAre("plain"));
  encoder_->Use(*ParseEncoding("float32/planes/zstd"), {true, true, false});
  const Receiver receiver = Push(gradient);
  ASSERT_EQ(receiver.payloads.size(), 2u);
  EXPECT_EQ(receiver.payloads[0], "plain");
  EXPECT_NE(receiver.payloads[1], "plain");
  EXPECT_EQ(receiver.values, gradient);
}

TEST_F(GradientEncoderTest, ARunThatIsPlainEndsWhereThePartOfTheGradientDoes) {
  Use("auto", true, LayoutOf({{"a", 2000}, {"b", 2000}, {"c", 2000}}));
  const Values gradient = Gradient(6000);
  const SharedFloats all = Share(gradient);
  encoder_->Begin(Sequence(1), Step(), 0);
  Receiver receiver(gradient.size());
  GradientEncoder::Sent sent = encoder_->NothingSent();
  ASSERT_TRUE(encoder_->Send(500, all.Part(500, 3000), receiver, sent));
  EXPECT_EQ(sent[0].covered(), 3000u);
  EXPECT_EQ(receiver.values[3499], gradient[3499]);
  EXPECT_EQ(receiver.values[3500], 0.0f);
  ASSERT_TRUE(encoder_->Send(3500, all.Part(3500, 2500), receiver, sent));
  ASSERT_TRUE(encoder_->Send(0, all.Part(0, 500), receiver, sent));
  EXPECT_THAT(receiver.payloads, ElementsAre("plain", "plain", "plain"));
  EXPECT_EQ(receiver.values, gradient);
}

// The 2 waits with its momentum: 2, then 2 + 1.
TEST_F(GradientEncoderTest, WithMomentumCorrectionWhatWaitsGainsMomentum) {
  Use("top-k:0.001:momentum");
  Push(FewLarge(kSize));
  EXPECT_EQ(Push(Values(kSize, 0.0f)).values[2], 3.0f);
}

// The 2 waits for two larger ones twice: 2, then 2 + 1, then 2 + 1 + 0.5.
TEST_F(GradientEncoderTest, WithMomentumCorrectionWhatWaitsForAThirdPushKeepsItsMomentum) {
  Use("top-k:0.001:momentum");
  Push(FewLarge(kSize));
  Values larger(kSize, 0.0f);
  larger[0] = 9;
  larger[1] = 8;
  EXPECT_EQ(Push(larger).values[2], 0.0f);
  EXPECT_EQ(Push(Values(kSize, 0.0f)).values[2], 3.5f);
}

// Else the first of the zeros would still bring half of 8.
TEST_F(GradientEncoderTest, WithMomentumCorrectionWhatWasSentBeginsAnew) {
  Use("top-k:0.001:momentum");
  const Values zeros(kSize, 0.0f);
  Push(FewLarge(kSize));
  Push(zeros);
  EXPECT_EQ(Push(zeros).values, zeros);
}

TEST_F(GradientEncoderTest, WithMomentumCorrectionAPushThatDidNotCountLeavesNothing) {
  Use("top-k:0.001:momentum");
  Push(FewLarge(kSize));
  Push(Gradient(kSize), false);
  EXPECT_EQ(Push(Values(kSize, 0.0f)).values[2], 3.0f);
}

// Signs lose nothing of equal values, so the momentum itself arrives.
TEST_F(GradientEncoderTest, SignsAreThoseOfTheVelocityWhichGoesOnWhereItWasSent) {
  Use("sign:momentum");
  EXPECT_EQ(Push(Values(kSize, -4.0f)).values, Values(kSize, -4.0f));
  EXPECT_EQ(Push(Values(kSize, 0.0f)).values, Values(kSize, -2.0f));
  EXPECT_EQ(Push(Values(kSize, 5.0f)).values, Values(kSize, 4.0f));
}

// 1 and 3 are sent as 2 and 2, and leave -1 and 1 over. With half of the momentum that is -0.5 and
// 2.5; had the second push counted, it would be another sum.
TEST_F(GradientEncoderTest, WhatSignsLoseIsAddedToTheVelocityOfPushesThatCounted) {
  Use("sign:momentum");
  Values gradient(kSize, 1.0f);
  std::fill(gradient.begin() + 512, gradient.begin() + 1024, 3.0f);
  const Values zeros(kSize, 0.0f);
  EXPECT_EQ(Push(gradient).values[512], 2.0f);
  Push(Gradient(kSize), false);
  const Values received = Push(zeros).values;
  EXPECT_EQ(received[0], -1.5f);
  EXPECT_EQ(received[512], 1.5f);
  EXPECT_EQ(received[1024], 0.5f);
}

// As the server would: g, then g + g / 2, and so on; statistics have no momentum.
TEST_F(GradientEncoderTest, WithMomentumCorrectionDenseRangesHaveMomentumToo) {
  Use("top-k:0.001:momentum,dense=none", true,
      LayoutOf({{"small", 10}, {"mean", 10, RangeKind::kStatistic}, {"dense", 2000}, {"k", 2000}}));
  const Values ones(4020, 1.0f);
  for (const float expected : {1.0f, 1.5f, 1.75f, 1.875f}) {
    const Values received = Push(ones).values;
    EXPECT_EQ(received[9], expected);
    EXPECT_EQ(received[10], 1.0f);
    EXPECT_EQ(received[20], expected);
    EXPECT_EQ(received[2019], expected);
  }
}

size_t CountSent(const Values& received) {
  return received.size() - static_cast<size_t>(std::count(received.begin(), received.end(), 0.0f));
}

TEST_F(GradientEncoderTest, TheShareThatIsSentFallsWhileItWarmsUp) {
  Use("top-k:0.001:warmup=8");
  const Values gradient = Gradient(kSize);
  std::vector<size_t> sent;
  for (uint64_t step = 0; step < 10; ++step) {
    step_ = Step(step);
    sent.push_back(CountSent(Push(gradient).values));
  }
  EXPECT_THAT(sent, ElementsAre(500, 500, 126, 126, 32, 32, 8, 8, 2, 2));
}

TEST_F(GradientEncoderTest, AWorkerThatComesLateDoesNotWarmUp) {
  Use("top-k:0.001:warmup=8");
  step_ = Step(8);
  EXPECT_EQ(CountSent(Push(Gradient(kSize)).values), 2u);
}

TEST_F(GradientEncoderTest, SendsNoMoreOnceThePushHasEnded) {
  Use("int8");
  encoder_->Begin(Sequence(1), Step(), 0);
  Receiver receiver(kSize);
  receiver.ended = true;
  GradientEncoder::Sent sent = encoder_->NothingSent();
  EXPECT_FALSE(encoder_->Send(0, Share(Gradient(kSize)), receiver, sent));
  EXPECT_EQ(sent[0].covered(), 0u);
}

}  // namespace
}  // namespace sluice
