#include "worker/connection/send_stripe.h"

#include <numeric>
#include <vector>

#include "common/protocol/protocol_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"
#include "tests/worker/connection/fake_server.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Sends parts of a vector whose elements are their own indices.
class SendStripeTest : public ::testing::Test {
 protected:
  // Sends [begin, end) of stripe 1 of 2.
  bool Send(uint64_t size, uint64_t begin, uint64_t end) {
    Values values(size);
    std::iota(values.begin(), values.end(), 0.0F);
    vector_ = Share(std::move(values));
    stripes_ = Stripes(size, 2);
    server_.received.assign(stripes_.SizeOf(1), -1.0F);
    FakePush push(server_);
    return SendStripe(SharedStripe::Of(stripes_, 1, 0, vector_), begin, end, push);
  }

  void ExpectReceived(uint64_t begin, uint64_t end) const {
    for (uint64_t i = 0; i < server_.received.size(); ++i) {
      const bool sent = i >= begin && i < end;
      EXPECT_EQ(server_.received[i], sent ? static_cast<float>(stripes_.InVector(1, i)) : -1.0F);
    }
  }

  FakeServer server_;
  SharedFloats vector_;
  Stripes stripes_{0, 1};
};

TEST_F(SendStripeTest, SmallUnitsAreSentTogether) {
  EXPECT_TRUE(Send(1000, 10, 300));
  EXPECT_THAT(server_.sends, ElementsAre(290));
  ExpectReceived(10, 300);
}

TEST_F(SendStripeTest, APartOfOneUnitIsSentFromWhereItLies) {
  EXPECT_TRUE(Send(1000, 70, 120));
  EXPECT_THAT(server_.sends, ElementsAre(50));
  EXPECT_EQ(server_.last_sent, &vector_.values[stripes_.InVector(1, 70)]);
  ExpectReceived(70, 120);
}

TEST_F(SendStripeTest, ManySmallUnitsAreSentInChunks) {
  const uint64_t size = 3 * kChunkElements;
  EXPECT_TRUE(Send(size, 5, size / 2));
  EXPECT_THAT(server_.sends, ElementsAre(kChunkElements - 5, size / 2 - kChunkElements));
  ExpectReceived(5, size / 2);
}

TEST_F(SendStripeTest, NothingIsSentOfNothing) {
  EXPECT_TRUE(Send(1000, 70, 70));
  EXPECT_THAT(server_.sends, IsEmpty());
}

TEST_F(SendStripeTest, EndsWithThePush) {
  server_.fails = {CallPhase::kSend};
  server_.fault = absl::UnavailableError("gone");
  EXPECT_FALSE(Send(3 * kChunkElements, 0, 3 * kChunkElements / 2));
  EXPECT_EQ(server_.calls_of_send, 1);
}

}  // namespace
}  // namespace sluice
