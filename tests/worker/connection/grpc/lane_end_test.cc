// Lanes whose push or pull never begins: the server holds them, and the worker gives them up. One
// that was not given up would keep its test until the world's session has ended, or for an hour.

#include <memory>
#include <string>

#include "common/wire/chunk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/grpc/pull_lane.h"
#include "worker/connection/grpc/push_lane.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kDeadline = absl::Hours(1);

class GrpcLaneTest : public ::testing::Test {
 protected:
  GrpcLaneTest() : world_(Sync(1)), lanes_(world_.address().ToString(), CredentialsSource()) {
    EXPECT_THAT(world_.Join("a"), IsOk());
    name_.set_session(world_.session("a"));
    name_.set_call_number(1);
    lane_ = lanes_.Get(1).at(0);
  }

  void TearDown() override {
    EXPECT_EQ(world_.shard().Sessions()[0].presence, Presence::kPresent)
        << "the lane was given up only when its session had ended";
  }

  ServerWorld world_;
  GrpcLanes lanes_;
  v1::Lane name_;
  std::shared_ptr<GrpcLane> lane_;
};

TEST_F(GrpcLaneTest, APullGivesUpALaneThatWaits) {
  Values parameters(3);
  const TransformRegistry transforms = BuiltinTransforms();
  GrpcParameterSink sink("PullParams", absl::MakeSpan(parameters), transforms, nullptr);
  { GrpcPullLane lane(lane_, name_, kDeadline, {}, sink); }
  EXPECT_THAT(sink.AwaitComplete(), HasCode(absl::StatusCode::kUnavailable, ::testing::_));
}

TEST_F(GrpcLaneTest, APushGivesUpALaneWhoseAnswerDoesNotCome) {
  GrpcPushLane lane(lane_, name_, kDeadline, {});
  EXPECT_TRUE(lane.Offer(EncodeChunk(0, Share(Values(3)), Checksums::kOff)));
  lane.End();
}

// A worker that goes back to fewer connections closes the others.
TEST_F(GrpcLaneTest, ThereAreAsManyAsAreAskedFor) {
  EXPECT_THAT(lanes_.Get(3), SizeIs(3));
  EXPECT_THAT(lanes_.Get(1), ElementsAre(lane_));
  EXPECT_THAT(lanes_.Get(0), IsEmpty());
}

}  // namespace
}  // namespace sluice
