// Gradients that are encoded for several servers: each stripe for itself.

#include "worker/compression/stripe_encoder.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/encoding/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/compression/gradient_encoder.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::FloatNear;

// Decodes a stripe as its server does, and puts it to its place in the vector.
class StripeReceiver final : public OutgoingPush {
 public:
  StripeReceiver(const Stripes& stripes, uint32_t stripe, Values& vector, bool ended)
      : stripes_(stripes), stripe_(stripe), vector_(vector), ended_(ended) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    if (!ended_) Put(offset, part.values);
    return !ended_;
  }
  bool Send(const EncodedChunk& chunk) override {
    if (ended_) return false;
    Values decoded(chunk.how.count);
    EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), BuiltinTransforms()), IsOk());
    Put(chunk.offset, decoded);
    ++encoded_;
    return true;
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary&) override { return PushOutcome(); }
  void Cancel() override {}
  Transfer transfer() const override { return {}; }

  int encoded() const { return encoded_; }
  uint64_t received() const { return received_; }

 private:
  void Put(uint64_t offset, absl::Span<const float> values) {
    for (const float value : values) vector_[stripes_.InVector(stripe_, offset++)] = value;
    received_ += values.size();
  }

  const Stripes stripes_;
  const uint32_t stripe_;
  Values& vector_;
  const bool ended_;
  int encoded_ = 0;
  uint64_t received_ = 0;
};

// All servers of a job. A server may have ended its part of the push.
class Servers final : public OutgoingPush {
 public:
  Servers(uint64_t size, uint32_t count, int ended = -1) : stripes_(size, count), vector_(size) {
    for (uint32_t i = 0; i < count; ++i) {
      receivers_.push_back(
          std::make_unique<StripeReceiver>(stripes_, i, vector_, static_cast<int>(i) == ended));
    }
  }

  bool Send(uint64_t, const SharedFloats&) override { return false; }
  bool Send(const EncodedChunk&) override { return false; }
  bool SendEach(absl::FunctionRef<bool(uint32_t, OutgoingPush&)> send) override {
    bool open = true;
    for (uint32_t i = 0; i < stripes_.count(); ++i) open = send(i, *receivers_[i]) && open;
    return open;
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary&) override { return PushOutcome(); }
  void Cancel() override {}
  Transfer transfer() const override { return {}; }

  const Values& vector() const { return vector_; }
  const StripeReceiver& receiver(uint32_t server) const { return *receivers_[server]; }

 private:
  const Stripes stripes_;
  Values vector_;
  std::vector<std::unique_ptr<StripeReceiver>> receivers_;
};

Values Gradient(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Values values(size);
  for (float& value : values) value = normal(random);
  return values;
}

GradientEncoding EncodingOf(const std::string& choice, bool feedback = true) {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice(choice);
  encoding.error_feedback = feedback;
  encoding.momentum = 0.5F;
  return encoding;
}

// Large enough for units of whole blocks.
Layout LargeLayout() {
  return LayoutOf({{"a", 70'001},
                   {"bias", 77},
                   {"mean", 2000, RangeKind::kStatistic},
                   {"b", 460'000},
                   {"c", 1500},
                   {"d", 1030}});
}

// What the servers have received of each of three pushes.
std::vector<Values> Pushed(const std::string& choice, const Layout& layout, uint32_t servers) {
  GradientEncoder encoder(layout, EncodingOf(choice), "a", servers);
  std::vector<Values> received;
  for (uint32_t push = 1; push <= 3; ++push) {
    Servers to(layout.size(), servers);
    auto sent = encoder.NothingSent();
    encoder.Begin(Sequence(push), Step(push), 0);
    EXPECT_TRUE(encoder.Send(0, Share(Gradient(layout.size(), push)), to, sent));
    for (const Coverage& stripe : sent) EXPECT_THAT(stripe.CheckComplete(), IsOk());
    for (uint32_t i = 0; i < servers; ++i) EXPECT_GT(to.receiver(i).encoded(), 0) << choice;
    encoder.End(true);
    received.push_back(to.vector());
  }
  return received;
}

TEST(StripeEncoderTest, ArrivesWithTheSameBitsAtAnyNumberOfServers) {
  const Layout layout = LargeLayout();
  ASSERT_EQ(Stripes(layout.size(), 2).unit() % kSignBlock, 0u);
  for (const char* choice : {"float16", "bfloat16/planes/zstd", "float32/nonzero/pdict", "int8",
                             "int8,b=float16", "sign", "sign:momentum"}) {
    const auto expected = Pushed(choice, layout, 1);
    for (const uint32_t servers : {2, 3, 5}) {
      EXPECT_TRUE(Pushed(choice, layout, servers) == expected) << choice << ", " << servers;
    }
  }
}

TEST(StripeEncoderTest, SixteenBitsAreTheSameAlsoInSmallUnits) {
  const Layout layout = LayoutOf({{"a", 1500}, {"b", 30}, {"c", 4000}});
  for (const char* choice : {"float16", "bfloat16", "float32/planes/zstd"}) {
    const auto expected = Pushed(choice, layout, 1);
    for (const uint32_t servers : {2, 3}) {
      EXPECT_TRUE(Pushed(choice, layout, servers) == expected) << choice << ", " << servers;
    }
  }
}

// What pushes have left over comes with the last one, which loses nothing.
TEST(StripeEncoderTest, AllThatArrivesAndWhatIsLeftOverIsTheSumOfTheGradients) {
  const Layout layout = LayoutOf({{"a", 5000}, {"small", 10}, {"b", 3000}});
  for (const char* lossy : {"float16", "bfloat16", "int8", "int8:stochastic", "sign", "top-k:0.05",
                            "top-k:0.05:float16", "random-k:0.05"}) {
    for (const uint32_t servers : {1, 2, 3}) {
      GradientEncoder encoder(layout, EncodingOf(std::string("auto:") + lossy), "a", servers);
      Values left(layout.size(), 0.0F);
      for (uint32_t push = 1; push <= 6; ++push) {
        const bool last = push == 6;
        const Values gradient = last ? Values(layout.size(), 0.0F) : Gradient(layout.size(), push);
        encoder.Use(last ? Encoding() : *ParseEncoding(lossy), {});
        encoder.Begin(Sequence(push), Step(push), 0);
        Servers to(layout.size(), servers);
        auto sent = encoder.NothingSent();
        ASSERT_TRUE(encoder.Send(0, Share(gradient), to, sent));
        encoder.End(true);
        for (size_t i = 0; i < left.size(); ++i) left[i] += gradient[i] - to.vector()[i];
      }
      EXPECT_THAT(left, Each(FloatNear(0, 1e-5F))) << lossy << ", " << servers << " servers";
    }
  }
}

TEST(StripeEncoderTest, ChunksLeaveWhenAllOfThemHasCome) {
  const Layout layout = LargeLayout();
  const auto expected = Pushed("int8", layout, 3)[0];
  GradientEncoder encoder(layout, EncodingOf("int8"), "a", 3);
  encoder.Begin(Sequence(1), Step(1), 0);
  Servers to(layout.size(), 3);
  auto sent = encoder.NothingSent();
  const SharedFloats gradient = Share(Gradient(layout.size(), 1));
  constexpr uint64_t kPart = 10'000;
  for (uint64_t end = layout.size(); end > 60'000; end -= kPart) {
    ASSERT_TRUE(encoder.SendEarly(end - kPart, gradient.Part(end - kPart, kPart), to, sent));
  }
  // All of "b", "c" and "d", and what is plain before them. "a" is not whole yet.
  for (uint32_t i = 0; i < 3; ++i) EXPECT_NEAR(to.receiver(i).received(), 464'607 / 3, 1024);
  ASSERT_TRUE(encoder.Send(0, gradient, to, sent));
  EXPECT_TRUE(to.vector() == expected);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(to.receiver(i).received(), Stripes(layout.size(), 3).SizeOf(i));
  }
}

TEST(StripeEncoderTest, AServerThatHasEndedItsPartGetsNoMore) {
  const Layout layout = ParametersOnly(10'000);
  GradientEncoder encoder(layout, EncodingOf("top-k:0.1"), "a", 3);
  encoder.Begin(Sequence(1), Step(1), 0);
  auto sent = encoder.NothingSent();
  const SharedFloats gradient = Share(Gradient(layout.size(), 1));
  Servers ended(layout.size(), 3, 1);
  EXPECT_FALSE(encoder.Send(0, gradient, ended, sent));
  EXPECT_EQ(sent[1].covered(), 0u);
  EXPECT_THAT(sent[2].CheckComplete(), IsOk());
  // The push is repeated whole, with the same bytes.
  Servers again(layout.size(), 3);
  sent = encoder.NothingSent();
  EXPECT_TRUE(encoder.Send(0, gradient, again, sent));
  for (uint32_t i = 0; i < 3; ++i) EXPECT_THAT(sent[i].CheckComplete(), IsOk());
}

TEST(StripeEncoderTest, ChunksThatAreNotWorthItArePlainInTheirStripeOnly) {
  const Layout layout = LayoutOf({{"a", 4000}, {"b", 4000}});
  GradientEncoder encoder(layout, EncodingOf("auto:float16", false), "a", 2);
  encoder.Use(*ParseEncoding("float16"), {false, true, true, false});
  encoder.Begin(Sequence(1), Step(1), 0);
  Servers to(layout.size(), 2);
  auto sent = encoder.NothingSent();
  const Values gradient = Gradient(layout.size(), 1);
  ASSERT_TRUE(encoder.Send(0, Share(gradient), to, sent));
  EXPECT_EQ(to.receiver(0).encoded(), 1);
  EXPECT_EQ(to.receiver(1).encoded(), 1);
  const Stripes stripes(layout.size(), 2);
  const uint64_t in_b = stripes.InVector(0, stripes.SizeOf(0) - 1);
  EXPECT_EQ(to.vector()[in_b], gradient[in_b]);
  EXPECT_EQ(to.vector()[stripes.InVector(1, 0)], gradient[stripes.InVector(1, 0)]);
}

}  // namespace
}  // namespace sluice
