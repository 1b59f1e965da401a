#include "server/admission/in_flight_capacity.h"

#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// Of vectors of 4 MB.
uint32_t Capacity(const ShardOptions& options, const Consistency& consistency = {}) {
  return InFlightCapacity(ParametersOnly(1'000'000), options, consistency);
}

TEST(InFlightCapacityTest, IsWhatTheMemoryHoldsButNeverLessThanThree) {
  ShardOptions options;
  options.max_in_flight_bytes = 20'000'000;
  EXPECT_EQ(Capacity(options), 5u);
  options.max_in_flight_bytes = 0;
  EXPECT_EQ(Capacity(options), 3u);
}

TEST(InFlightCapacityTest, IsAmpleAt64VectorsOr128Megabytes) {
  ShardOptions options;
  options.ample_in_flight = true;
  EXPECT_EQ(Capacity(options), 64u);
  EXPECT_EQ(InFlightCapacity(ParametersOnly(250'000), options, {}), 128u);
  options.max_in_flight_bytes = 20'000'000;
  EXPECT_EQ(Capacity(options), 5u);
}

// Those that wait at their header would be left out of the step.
TEST(InFlightCapacityTest, HasNoAmpleSizeWhereAStepProceedsInOrderOfRanks) {
  ShardOptions options;
  options.ample_in_flight = true;
  options.max_in_flight_bytes = 400'000'000;
  Consistency consistency;
  consistency.order = ReductionOrder::kRank;
  consistency.max_step_wait = absl::Seconds(5);
  consistency.on_max_step_wait = StepWaitAction::kProceed;
  EXPECT_EQ(Capacity(options, consistency), 100u);
  consistency.on_max_step_wait = StepWaitAction::kEvict;
  EXPECT_EQ(Capacity(options, consistency), 64u);
}

}  // namespace
}  // namespace sluice
