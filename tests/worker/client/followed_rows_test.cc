// Rows that an observer pulls together with the parameters: of the same step, however fast the job
// trains.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/transport.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/client/parameter_follower.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Three parameters, and two tables whose rows begin with zeroes.
Layout ThreeAndTables() {
  TableSpec items;
  items.name = "items";
  items.width = 2;
  TableSpec users = items;
  users.name = "users";
  users.width = 1;
  return *Layout::Create(ParametersOnly(3).ranges(), {items, users});
}

JoinRequest With(JoinRequest request) {
  request.layout = ThreeAndTables();
  return request;
}

// A worker whose every step takes 1 from the parameters and from rows 5 and 7 of both tables.
class Trainer {
 public:
  explicit Trainer(ServerWorld& world) : client_(ConnectTo(world.address().ToString())) {
    EXPECT_THAT(client_.Join(With(WorkerRequest("a")), absl::MakeSpan(parameters_)), IsOk());
  }

  void Train() {
    client_.SetRows({{{0, {5, 7}}, Share({1, 1, 1, 1})}, {{1, {5, 7}}, Share({1, 1})}});
    EXPECT_THAT(client_.PushPull(Share({1, 1, 1}), 1, absl::nullopt, absl::MakeSpan(parameters_)),
                IsOk());
  }

  void Leave() { EXPECT_THAT(client_.Leave({}), IsOk()); }

 private:
  ParameterClient client_;
  Values parameters_ = {0, 0, 0};
};

const std::vector<RowIds>& Followed() {
  static const auto* const rows = new std::vector<RowIds>{{0, {5, 6}}, {1, {7}}};
  return *rows;
}

class FollowedRowsTest : public ::testing::TestWithParam<Transport> {
 protected:
  // Steps go down from 0 by one: what was pulled tells its step.
  absl::optional<FollowedStep> Next(uint64_t every = 1) {
    const auto next =
        follower_.Next(every, absl::MakeSpan(parameters_), Followed(), absl::MakeSpan(rows_));
    EXPECT_THAT(next, IsOk());
    if (!next.ok() || !next->has_value()) return absl::nullopt;
    const float value = -static_cast<float>((*next)->step.value());
    EXPECT_THAT(parameters_, Each(value));
    EXPECT_EQ(rows_, Values({value, value, 0, 0, value})) << "row 6 was never touched";
    return *next;
  }

  ServerWorld world_{Async(1), ThreeAndTables()};
  Trainer trainer_{world_};
  ParameterFollower follower_{GetParam()(world_), With(ObserverRequest("o")), absl::ZeroDuration()};
  Values parameters_ = {9, 9, 9};
  Values rows_ = {9, 9, 9, 9, 9};
};

INSTANTIATE_TEST_SUITE_P(, FollowedRowsTest, ::testing::Values(&InProcess, &OverGrpc),
                         TransportName);

TEST_P(FollowedRowsTest, AreOfTheStepOfTheParameters) {
  EXPECT_EQ(Next()->step, Step(0));
  for (int i = 0; i < 3; ++i) trainer_.Train();
  EXPECT_EQ(Next(2)->step, Step(3));
}

TEST_P(FollowedRowsTest, AreOfTheStepOfTheParametersWhileTheJobTrainsAtFullSpeed) {
  std::atomic<bool> ends{false};
  std::thread training([&] {
    while (!ends) trainer_.Train();
    trainer_.Leave();
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Next().has_value());
  ends = true;
  while (Next(1'000'000).has_value()) {
  }
  training.join();
}

TEST_P(FollowedRowsTest, AreThoseOfTheLastStepAtTheEnd) {
  Next();
  trainer_.Train();
  trainer_.Leave();
  EXPECT_EQ(Next(100)->step, Step(1));
  EXPECT_FALSE(Next(100).has_value());
}

TEST_P(FollowedRowsTest, AreRefusedIfTheyDoNotFitIntoTheMemoryOrTheModel) {
  const auto next = [&](const std::vector<RowIds>& rows, size_t elements) {
    Values memory(elements);
    return follower_.Next(1, absl::MakeSpan(parameters_), rows, absl::MakeSpan(memory)).status();
  };
  EXPECT_THAT(
      next(Followed(), 4),
      IsError(Reason::kBadArgument, HasSubstr("have 5 elements, and there is memory for 4")));
  EXPECT_THAT(
      next({{2, {5}}}, 1),
      IsError(Reason::kBadArgument, HasSubstr("of table 2 are followed, and the model has 2")));
  EXPECT_THAT(next({{1, std::vector<RowId>(kMostFollowedIds + 1)}}, kMostFollowedIds + 1),
              IsError(Reason::kBadArgument, HasSubstr("2800001 rows are followed")));
}

}  // namespace
}  // namespace sluice
