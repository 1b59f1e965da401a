// Initial parameters over real gRPC, by workers that send what they should not.

#include "server/rpc/initialize.h"

#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A worker "a" of a server that has no parameters yet. After every test its own become the job's.
class GrpcInitializeTest : public ::testing::Test {
 protected:
  GrpcInitializeTest() : world_(Sync(1), LayoutOf({{"conv.weight", 4}, {"fc.bias", 3}})) {
    EXPECT_THAT(world_.Join("a"), IsOk());
  }

  void TearDown() override {
    const auto accepted = world_.Initialize("a", Values(7, 10));
    ASSERT_THAT(accepted, IsOk());
    EXPECT_TRUE(accepted->accepted());
    EXPECT_EQ(world_.Pull("a", 0)->values, Values(7, 10));
  }

  // An offer of an honest header and these messages.
  absl::Status Offer(std::vector<v1::InitializeParamsRequest> messages) {
    messages.insert(messages.begin(), HeaderOf(world_.session("a")));
    return world_.SendParameters(messages).status();
  }

  ServerWorld world_;
};

TEST_F(GrpcInitializeTest, RefusesAnOfferOfNoMessages) {
  EXPECT_THAT(world_.SendParameters({}),
              IsError(Reason::kMissingHeader, HasSubstr("the offer has no header")));
}

TEST_F(GrpcInitializeTest, RefusesAnOfferThatBeginsWithAChunk) {
  EXPECT_THAT(world_.SendParameters({ParametersOf(0, Values(7, 5))}),
              IsError(Reason::kMissingHeader, HasSubstr("send it before the chunks")));
}

TEST_F(GrpcInitializeTest, RefusesASecondHeaderInAnOffer) {
  EXPECT_THAT(Offer({HeaderOf(world_.session("a"))}),
              IsError(Reason::kBadArgument, HasSubstr("after the header holds no chunk")));
}

TEST_F(GrpcInitializeTest, RefusesAnOfferThatIsNotWhole) {
  EXPECT_THAT(Offer({ParametersOf(3, Values(4, 5))}),
              IsError(Reason::kBadChunk, HasSubstr("elements 0 to 2 are missing: 4 of 7 arrived")));
}

TEST_F(GrpcInitializeTest, RefusesParametersOutsideTheVector) {
  EXPECT_THAT(Offer({ParametersOf(0, Values(8, 5))}),
              IsError(Reason::kBadChunk, HasSubstr("lies outside the vector of 7 elements")));
}

TEST_F(GrpcInitializeTest, RefusesParametersThatOverlap) {
  EXPECT_THAT(Offer({ParametersOf(0, Values(5, 5)), ParametersOf(4, Values(3, 5))}),
              IsError(Reason::kBadChunk, HasSubstr("3 elements at offset 4 overlaps")));
}

TEST_F(GrpcInitializeTest, NamesTheInitialParameterThatIsNotANumber) {
  EXPECT_THAT(Offer({ParametersOf(0, {1, 1, kNan, 1, 1, 1, 1})}),
              IsError(Reason::kNotFinite, HasSubstr("conv.weight[2] is nan")));
}

TEST_F(GrpcInitializeTest, ForgetsAnOfferThatItsWorkerCancels) {
  const auto stream = world_.OpenInitialize();
  stream->Write(HeaderOf(world_.session("a")));
  stream->Write(ParametersOf(0, Values(6, 5)));
  stream->Cancel();
  EXPECT_THAT(stream->Answer(), HasCode(absl::StatusCode::kCancelled, _));
}

TEST_F(GrpcInitializeTest, RefusesAPushBeforeThereAreParameters) {
  EXPECT_THAT(world_.Push("a", 0, Values(7, 5)),
              IsError(Reason::kNotInitialized, HasSubstr("initialize them first")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

}  // namespace
}  // namespace sluice
