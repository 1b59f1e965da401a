#include "common/base/serial_executor.h"

#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(SerialExecutorTest, DoesWhatItIsGivenInOrder) {
  std::vector<int> done;
  SerialExecutor background;
  for (const int task : {1, 2, 3}) background.Run([&done, task] { done.push_back(task); });
  background.Drain();
  EXPECT_THAT(done, ElementsAre(1, 2, 3));
  background.Run([&done] { done.push_back(4); });
  background.Drain();
  EXPECT_THAT(done, ElementsAre(1, 2, 3, 4));
}

TEST(SerialExecutorTest, DoesNotHoldUpWhoGivesIt) {
  SerialExecutor background;
  absl::Notification given;
  background.Run([&given] { given.WaitForNotification(); });
  background.Run([] {});
  given.Notify();
  background.Drain();
}

TEST(SerialExecutorTest, WaitsForATaskThatIsUnderWay) {
  SerialExecutor background;
  absl::Notification begun, may_end;
  bool ended = false;
  background.Run([&] {
    begun.Notify();
    may_end.WaitForNotification();
    ended = true;
  });
  begun.WaitForNotification();
  may_end.Notify();
  background.Drain();
  EXPECT_TRUE(ended);
}

TEST(SerialExecutorTest, EndsAfterAllItWasGiven) {
  int done = 0;
  {
    SerialExecutor background;
    for (int i = 0; i < 100; ++i) background.Run([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(SerialExecutorTest, HasNothingToWaitForAtFirst) { SerialExecutor().Drain(); }

}  // namespace
}  // namespace sluice
