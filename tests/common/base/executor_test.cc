#include "common/base/executor.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "common/base/executor_pool.h"
#include "common/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(InlineExecutorTest, RunsEachTaskBeforeItReturns) {
  std::vector<int> done;
  InlineExecutor executor;
  executor.Run([&] { done.push_back(1); });
  EXPECT_THAT(done, ElementsAre(1));
}

// Each waits for the other, so they end only if both run at once.
TEST(ExecutorPoolTest, RunsAsManyTasksAtOnceAsItHasThreads) {
  absl::Barrier both(2);
  std::atomic<int> done{0};
  ExecutorPool pool(2);
  for (int i = 0; i < 2; ++i) {
    pool.Run([&] {
      both.Block();
      ++done;
    });
  }
  pool.Drain();
  EXPECT_EQ(done, 2);
}

TEST(ExecutorPoolTest, EndsAfterAllThatItsTasksGaveIt) {
  std::atomic<int> done{0};
  {
    ExecutorPool pool(2);
    for (int i = 0; i < 10; ++i) {
      pool.Run([&] {
        ++done;
        pool.Run([&] { ++done; });
      });
    }
    pool.Drain();
    EXPECT_EQ(done, 20);
    pool.Run([&] { ++done; });
  }
  EXPECT_EQ(done, 21);
}

TEST(ExecutorPoolTest, HasFreedWhatATaskOwnsWhenItIsDrained) {
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = owned;
  ExecutorPool pool(1);
  pool.Run([owned = std::move(owned)] {});
  pool.Drain();
  EXPECT_TRUE(watched.expired());
}

TEST(ExecutorPoolTest, CountsTheTasksThatRunOrWait) {
  absl::Notification begun, may_end;
  SerialExecutor executor;
  EXPECT_EQ(executor.tasks(), 0u);
  executor.Run([&] {
    begun.Notify();
    may_end.WaitForNotification();
  });
  executor.Run([] {});
  begun.WaitForNotification();
  EXPECT_EQ(executor.tasks(), 2u);
  may_end.Notify();
  executor.Drain();
  EXPECT_EQ(executor.tasks(), 0u);
}

TEST(ExecutorPoolTest, NamesItsThreads) {
  char name[16] = "";
  ExecutorPool pool(1, "sluice-step");
  pool.Run([&] { pthread_getname_np(pthread_self(), name, sizeof(name)); });
  pool.Drain();
  EXPECT_EQ(std::string(name), "sluice-step");
}

TEST(BoundedExecutorTest, RefusesWhatIsTooMuchUntilATaskHasEnded) {
  absl::Notification may_end;
  std::vector<int> done;
  SerialExecutor executor;
  BoundedExecutor bounded(executor, 2);
  EXPECT_TRUE(bounded.TryRun([&] {
    may_end.WaitForNotification();
    done.push_back(1);
  }));
  EXPECT_TRUE(bounded.TryRun([&] { done.push_back(2); }));
  EXPECT_FALSE(bounded.TryRun([&] { done.push_back(3); }));
  may_end.Notify();
  executor.Drain();
  EXPECT_TRUE(bounded.TryRun([&] { done.push_back(4); }));
  executor.Drain();
  EXPECT_THAT(done, ElementsAre(1, 2, 4));
}

}  // namespace
}  // namespace sluice
