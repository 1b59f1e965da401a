// A fixture for tests that send messages that a correct worker never sends. It checks after each
// test that the server continues to train correctly.

#ifndef SLUICE_TESTS_TESTING_SERVER_TRAINED_SERVER_TEST_H_
#define SLUICE_TESTS_TESTING_SERVER_TRAINED_SERVER_TEST_H_

#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {

// A worker "a" trains two tensors with 7 elements in total, which are 10 at first. All its
// gradients are 1, so a gradient of another worker would show in the parameters. After each test,
// worker "a" completes one more step, and the parameters must be 10 minus the number of steps.
class TrainedServerTest : public ::testing::Test {
 protected:
  TrainedServerTest() : world_(Sync(1), LayoutOf({{"conv.weight", 4}, {"fc.bias", 3}})) {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", Values(7, 10)), IsOk());
  }

  void TearDown() override {
    const uint64_t step = CompleteStep();
    const auto pulled = world_.Pull("a", step);
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(pulled->values, Values(7, 10 - static_cast<float>(step)));
  }

  // Returns the new step.
  uint64_t CompleteStep() {
    const uint64_t next = world_.shard().Describe().step.value() + 1;
    EXPECT_THAT(world_.Push("a", next - 1, Values(7, 1)), Applied(next));
    return next;
  }

  ServerWorld world_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_TRAINED_SERVER_TEST_H_
