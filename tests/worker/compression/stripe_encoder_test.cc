// Gradients that are encoded for several servers: each stripe for itself.

#include "worker/compression/stripe_encoder.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/encoding/codec.h"
#include "common/tensor/stripe_span.h"
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
  bool SendEncoded(const EncodedChunk& chunk, uint64_t taken) override {
    if (ended_) return false;
    Values decoded(chunk.how.count);
    EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), BuiltinTransforms()), IsOk());
    if (chunk.of_vector) {
      const StripeSpan<const float> own(stripes_, stripe_, chunk.offset, decoded);
      EXPECT_EQ(own.size(), taken);
      EXPECT_GT(taken, 0u);
      Values part(own.size());
      Gather(own, own.begin(), own.end(), part.data());
      Put(own.begin(), part);
      whole_bytes_ += chunk.payload.size();
    } else {
      Put(chunk.offset, decoded);
    }
    ++encoded_;
    return true;
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary&) override { return PushOutcome(); }
  void Cancel() override {}
  Transfer transfer() const override { return {}; }

  int encoded() const { return encoded_; }
  // Of chunks of the whole vector.
  uint64_t whole_bytes() const { return whole_bytes_; }
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
  uint64_t whole_bytes_ = 0;
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
  bool SendEncoded(const EncodedChunk&, uint64_t) override { return false; }
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

// ---- Matrices in low-rank ----

// Matrices of several chunks, of one, and of a few units; one that low-rank does not make smaller;
// and tensors that are no matrices.
Layout Matrices() {
  return *Layout::Create({{"a", {700, 400}, {}, {}, 0, 280000},
                          {"bias", {77}, {}, {}, 280000, 77},
                          {"mean", {2000}, RangeKind::kStatistic, {}, 280077, 2000},
                          {"b", {30, 5, 10}, {}, {}, 282077, 1500},
                          {"vector", {1500}, {}, {}, 283577, 1500},
                          {"thin", {1024, 2}, {}, {}, 285077, 2048},
                          {"c", {300, 200}, {}, {}, 287125, 60000}});
}

TEST(StripeEncoderTest, MatricesInLowRankHaveTheBitsOfOneServer) {
  const Layout layout = Matrices();
  for (const char* choice : {"low-rank:2", "low-rank:3,c=int8", "float16,b=low-rank:1"}) {
    const auto expected = Pushed(choice, layout, 1);
    for (const uint32_t servers : {2, 3, 7}) {
      EXPECT_TRUE(Pushed(choice, layout, servers) == expected) << choice << ", " << servers;
    }
  }
}

// Units are whole blocks of signs.
Layout LargeMatrices() {
  return *Layout::Create({{"a", {1500, 400}, {}, {}, 0, 600000},
                          {"bias", {77}, {}, {}, 600000, 77},
                          {"c", {300, 200}, {}, {}, 600077, 60000}});
}

// What the servers have received of six pushes, each of which is sent twice. The third does not
// count, and the learning rate changes.
std::vector<Values> PushedWithTrouble(const std::string& choice, uint32_t servers) {
  const Layout layout = LargeMatrices();
  GradientEncoder encoder(layout, EncodingOf(choice), "a", servers);
  std::vector<Values> received;
  for (uint32_t push = 1; push <= 6; ++push) {
    encoder.Begin(Sequence(push), Step(push), push < 5 ? 0.1 : 0.03);
    const SharedFloats gradient = Share(Gradient(layout.size(), push));
    Servers first(layout.size(), servers);
    auto sent = encoder.NothingSent();
    EXPECT_TRUE(encoder.Send(0, gradient, first, sent));
    Servers again(layout.size(), servers);
    sent = encoder.NothingSent();
    EXPECT_TRUE(encoder.Send(0, gradient, again, sent));
    EXPECT_TRUE(again.vector() == first.vector());
    encoder.End(push != 3);
    received.push_back(first.vector());
  }
  return received;
}

TEST(StripeEncoderTest, WhatLowRankLosesIsKeptAsWithOneServer) {
  for (const char* choice : {"low-rank:2", "low-rank:2,c=sign", "sign:momentum,a=low-rank:2"}) {
    const auto expected = PushedWithTrouble(choice, 1);
    for (const uint32_t servers : {2, 5}) {
      EXPECT_TRUE(PushedWithTrouble(choice, servers) == expected) << choice << ", " << servers;
    }
  }
}

// "b" has 1500 elements, in three or four units of 512, and there are 9 servers.
TEST(StripeEncoderTest, AMatrixGoesToTheServersThatHoldPartsOfIt) {
  const Layout layout = Matrices();
  GradientEncoder encoder(layout, EncodingOf("none,b=low-rank:1"), "a", 9);
  encoder.Begin(Sequence(1), Step(1), 0);
  Servers to(layout.size(), 9);
  auto sent = encoder.NothingSent();
  ASSERT_TRUE(encoder.Send(0, Share(Gradient(layout.size(), 1)), to, sent));
  const Stripes stripes(layout.size(), 9);
  for (uint32_t i = 0; i < 9; ++i) {
    const bool holds = stripes.Before(i, 282077) < stripes.Before(i, 283577);
    EXPECT_EQ(to.receiver(i).whole_bytes(), holds ? (30 + 50) * sizeof(float) : 0) << i;
  }
}

TEST(StripeEncoderTest, AMatrixInLowRankLeavesWhenAllOfItHasCome) {
  const Layout layout = Matrices();
  const auto expected = Pushed("low-rank:2", layout, 3)[0];
  GradientEncoder encoder(layout, EncodingOf("low-rank:2"), "a", 3);
  encoder.Begin(Sequence(1), Step(1), 0);
  Servers to(layout.size(), 3);
  auto sent = encoder.NothingSent();
  const SharedFloats gradient = Share(Gradient(layout.size(), 1));
  for (size_t i = layout.ranges().size(); i-- > 1;) {
    const LayoutRange& range = layout.ranges()[i];
    ASSERT_TRUE(
        encoder.SendEarly(range.offset, gradient.Part(range.offset, range.length), to, sent));
  }
  // All but "a".
  uint64_t received = 0;
  for (uint32_t i = 0; i < 3; ++i) received += to.receiver(i).received();
  EXPECT_EQ(received, layout.size() - 280000);
  ASSERT_TRUE(encoder.Send(0, gradient, to, sent));
  EXPECT_TRUE(to.vector() == expected);
  for (const Coverage& stripe : sent) EXPECT_THAT(stripe.CheckComplete(), IsOk());
}

// Each push of zeros brings more of what the first push has lost.
TEST(StripeEncoderTest, WhatLowRankLosesComesLater) {
  const Layout layout = *Layout::Create({{"w", {80, 90}, {}, {}, 0, 7200}});
  GradientEncoder encoder(layout, EncodingOf("low-rank:1"), "a", 3);
  Values left(layout.size(), 0.0F);
  for (uint32_t push = 1; push <= 60; ++push) {
    const Values gradient = push == 1 ? Gradient(layout.size(), 1) : Values(layout.size(), 0.0F);
    encoder.Begin(Sequence(push), Step(push), 0);
    Servers to(layout.size(), 3);
    auto sent = encoder.NothingSent();
    ASSERT_TRUE(encoder.Send(0, Share(gradient), to, sent));
    encoder.End(true);
    for (size_t i = 0; i < left.size(); ++i) left[i] += gradient[i] - to.vector()[i];
  }
  double before = 0;
  double after = 0;
  for (const float value : Gradient(layout.size(), 1)) before += value * value;
  for (const float value : left) after += value * value;
  EXPECT_LT(after, before / 4);
}

}  // namespace
}  // namespace sluice
