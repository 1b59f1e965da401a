// Encoded gradients at several servers. What one server finds wrong with its part, the first one
// refuses for all.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/striped_job.h"
#include "tests/testing/bomb.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/server_connection.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kElements = 1000;
constexpr uint32_t kServers = 3;

Values Whole(const Stripes& stripes, uint32_t stripe) {
  return Values(stripes.SizeOf(stripe), static_cast<float>(stripe + 1));
}

EncodedChunk Encoded(const std::string& encoding, const Values& values, uint64_t offset = 0) {
  return EncodeValues(offset, values, *ParseEncoding(encoding), {}, BuiltinTransforms());
}

// A chunk with the right checksum of a payload that its sender has made up.
EncodedChunk WithPayload(EncodedChunk chunk, std::string payload) {
  const auto owner = std::make_shared<const std::string>(std::move(payload));
  chunk.payload = *owner;
  chunk.owner = owner;
  chunk.checksum = Checksum(chunk.payload);
  return chunk;
}

// A job of kServers servers, and the connection of its worker. Each has kElements / 3 elements.
class EncodedStripesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto welcome = connection_->Join(WorkerRequest("a", kElements));
    ASSERT_THAT(welcome, IsOk());
    welcome_ = *welcome;
    ASSERT_THAT(connection_->Initialize(welcome_.session, Values(kElements)), IsOk());
  }

  void TearDown() override {
    EXPECT_THAT(connection_->Leave(welcome_.session, {}), IsOk());
    connection_.reset();
    EXPECT_TRUE(job_.EndsWell());
  }

  // A push of the gradient Whole() on step 0, in which the server gets `chunks`.
  absl::StatusOr<PushOutcome> Push(uint32_t server, const std::vector<EncodedChunk>& chunks) {
    PushHeader header;
    header.session = welcome_.session;
    header.sequence = sequence_ = sequence_.Next();
    header.incarnation = welcome_.incarnation;
    header.samples = 1;
    const auto push = connection_->StartPush(header, kElements, BatchIs::kInSummary);
    push->SendEach([&](uint32_t stripe, OutgoingPush& to) {
      if (stripe != server) return to.Send(Encoded("int8", Whole(stripes_, stripe)));
      bool open = true;
      for (const EncodedChunk& chunk : chunks) open = open && to.Send(chunk);
      return open;
    });
    return push->Finish({1, absl::nullopt, nullptr, nullptr, absl::nullopt});
  }

  Values Pulled(uint64_t min_step) {
    PullRequest request;
    request.session = welcome_.session;
    request.min_step = Step(min_step);
    Values parameters(kElements, -1.0F);
    const auto header = connection_->StartPull(request)->Read(absl::MakeSpan(parameters));
    EXPECT_THAT(header, IsOk());
    EXPECT_TRUE(header.ok() && header->step == Step(min_step));
    return parameters;
  }

  const Stripes stripes_{kElements, kServers};
  StripedJob job_{Sync(1), kServers};
  std::unique_ptr<ServerConnection> connection_ = ConnectTo(job_.address());
  Welcome welcome_;
  Sequence sequence_;
};

TEST_F(EncodedStripesTest, EachServerDecodesItsOwn) {
  EXPECT_THAT(Push(1, {Encoded("float16/planes/zstd", Whole(stripes_, 1))}), Applied(1));
  const Values parameters = Pulled(1);
  for (uint64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(parameters[i], -static_cast<float>(stripes_.StripeOf(i) + 1));
  }
}

EncodedChunk OfVector(EncodedChunk chunk) {
  chunk.of_vector = true;
  return chunk;
}

// Two chunks of the whole vector, of which the server takes what it holds.
TEST_F(EncodedStripesTest, AServerTakesItsOwnOfAChunkOfTheWholeVector) {
  Values vector(kElements);
  for (uint64_t i = 0; i < kElements; ++i) {
    vector[i] = static_cast<float>(stripes_.StripeOf(i) + 1);
  }
  const Values begin(vector.begin(), vector.begin() + 700);
  const Values end(vector.begin() + 700, vector.end());
  EXPECT_THAT(Push(1, {OfVector(Encoded("float16", end, 700)),
                       OfVector(Encoded("bfloat16/planes", begin))}),
              Applied(1));
  const Values parameters = Pulled(1);
  for (uint64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(parameters[i], -static_cast<float>(stripes_.StripeOf(i) + 1)) << i;
  }
}

// What a hostile worker sends to one of the servers in place of its part.
struct Hostile {
  std::string name;
  std::function<std::vector<EncodedChunk>(const Values& part)> chunks;
  Reason reason;
  std::string why;
};

EncodedChunk Unknown(EncodedChunk chunk) {
  chunk.how.transform = ValueTransform::kCustom;
  chunk.how.custom = "four-bit";
  return chunk;
}

EncodedChunk Corrupt(EncodedChunk chunk) {
  ++chunk.checksum;
  return chunk;
}

using Chunks = std::vector<EncodedChunk>;

std::vector<Hostile> AllHostile() {
  return {
      {"cut short",
       [](const Values& part) {
         const EncodedChunk chunk = Encoded("int8", part);
         return Chunks{WithPayload(chunk, std::string(chunk.payload.substr(1)))};
       },
       Reason::kBadChunk, " bytes, expected "},
      {"of the whole vector", [](const Values&) { return Chunks{Encoded("int8", Values(1000))}; },
       Reason::kBadChunk, "chunk of 1000 elements at offset 0 lies outside the vector of 3"},
      {"of another place",
       [](const Values& part) {
         return Chunks{Encoded("int8", part), Encoded("int8", Values(10), 100)};
       },
       Reason::kBadChunk, "chunk of 10 elements at offset 100 overlaps elements before 3"},
      {"missing", [](const Values&) { return Chunks{Encoded("int8", Values(100))}; },
       Reason::kBadChunk, "elements 100 to "},
      {"outside the whole vector",
       [](const Values&) { return Chunks{OfVector(Encoded("int8", Values(1000), 500))}; },
       Reason::kBadChunk, "at offset 500 of the whole vector lies outside it; it has 1000"},
      {"at an offset that is too large for sums",
       [](const Values&) { return Chunks{OfVector(Encoded("int8", Values(1000), ~0ull - 5))}; },
       Reason::kBadChunk, "of the whole vector lies outside it"},
      {"of another stripe alone",
       [](const Values& part) {
         return Chunks{OfVector(Encoded("int8", Values(64), part[0] == 1 ? 64 : 0))};
       },
       Reason::kBadChunk, "has none that this server holds"},
      {"twice the same",
       [](const Values&) {
         const EncodedChunk chunk = OfVector(Encoded("int8", Values(1000)));
         return Chunks{chunk, chunk};
       },
       Reason::kBadChunk, "overlaps"},
      {"a bomb",
       [](const Values& part) {
         return Chunks{WithPayload(Encoded("float32/zstd", part), Bomb())};
       },
       Reason::kBadChunk, "expected "},
      {"corrupt", [](const Values& part) { return Chunks{Corrupt(Encoded("int8", part))}; },
       Reason::kCorruptChunk, "checksum"},
      {"unknown", [](const Values& part) { return Chunks{Unknown(Encoded("int8", part))}; },
       Reason::kBadArgument, "four-bit"},
  };
}

TEST_F(EncodedStripesTest, WhatIsNotFiniteIsNamedAsInTheWholeVector) {
  for (uint32_t server = 0; server < kServers; ++server) {
    Values part = Whole(stripes_, server);
    part[70] = INFINITY;
    EXPECT_THAT(Push(server, {Encoded("int8", part)}),
                IsError(Reason::kNotFinite,
                        HasSubstr(absl::StrCat("w[", stripes_.InVector(server, 70), "] is inf"))));
  }
  EXPECT_EQ(Pulled(0), Values(kElements));
}

TEST_F(EncodedStripesTest, WhatOneServerRefusesCountsNowhere) {
  for (const Hostile& hostile : AllHostile()) {
    for (uint32_t server = 0; server < kServers; ++server) {
      EXPECT_THAT(Push(server, hostile.chunks(Whole(stripes_, server))),
                  IsError(hostile.reason, HasSubstr(hostile.why)))
          << hostile.name << " at server " << server;
    }
  }
  EXPECT_EQ(Pulled(0), Values(kElements));
  EXPECT_THAT(Push(2, {Encoded("top-k:0.5", Values(stripes_.SizeOf(2), 8))}), Applied(1));
  const Values parameters = Pulled(1);
  EXPECT_EQ(parameters[0], -1.0F);
  EXPECT_EQ(parameters[64], -2.0F);
  EXPECT_EQ(parameters[128], -8.0F);
}

// ---- Matrices in low-rank ----

// A worker trains for three steps. Returns the parameters.
Values TrainInLowRank(const std::string& address, const Layout& layout) {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice("low-rank:2");
  ParameterClient client(ConnectTo(address), encoding);
  JoinRequest request = WorkerRequest("a");
  request.layout = layout;
  Values parameters(layout.size(), 0.5F);
  EXPECT_THAT(client.Join(request, absl::MakeSpan(parameters)), IsOk());
  for (uint32_t round = 1; round <= 3; ++round) {
    Values gradient(layout.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = std::sin(static_cast<float>(i * round));
    }
    EXPECT_THAT(client.PushPull(Share(gradient), 1, 0.5F, absl::MakeSpan(parameters)), IsOk());
  }
  EXPECT_THAT(client.Leave({}), IsOk());
  return parameters;
}

TEST(LowRankStripesTest, HaveTheBitsOfOneServer) {
  const Layout layout = *Layout::Create({{"a", {300, 200}, {}, {}, 0, 60000},
                                         {"bias", {77}, {}, {}, 60000, 77},
                                         {"b", {40, 50}, {}, {}, 60077, 2000}});
  StripedJob alone(Sync(1), 1);
  const Values expected = TrainInLowRank(alone.address(), layout);
  EXPECT_TRUE(alone.EndsWell());
  for (const uint32_t servers : {2, 3}) {
    StripedJob job(Sync(1), servers);
    EXPECT_TRUE(TrainInLowRank(job.address(), layout) == expected) << servers << " servers";
    EXPECT_TRUE(job.EndsWell());
  }
}

}  // namespace
}  // namespace sluice
