#include "common/base/thread_pool.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(SerialTest, DoesThePartsInOrder) {
  std::vector<size_t> parts;
  Serial().For(3, [&](size_t part) { parts.push_back(part); });
  EXPECT_THAT(parts, ElementsAre(0, 1, 2));
}

TEST(ThreadPoolTest, DoesEachPartOnceAndAllBeforeItReturns) {
  ThreadPool pool(4);
  for (size_t count : {0, 1, 2, 3, 4, 5, 100, 1000}) {
    std::vector<std::atomic<int>> done(count);
    pool.For(count, [&](size_t part) { ++done[part]; });
    for (const std::atomic<int>& times : done) ASSERT_EQ(times, 1) << count;
  }
}

TEST(ThreadPoolTest, WorksAgainAndAgain) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  for (int i = 0; i < 5000; ++i) pool.For(3, [&](size_t) { ++done; });
  EXPECT_EQ(done, 15000);
}

// Two parts that wait for each other need two threads.
TEST(ThreadPoolTest, DoesPartsAtOnce) {
  ThreadPool pool(2);
  absl::Barrier both(2);
  pool.For(2, [&](size_t) { both.Block(); });
}

TEST(ThreadPoolTest, UsesTheCallersThread) {
  const std::thread::id caller = std::this_thread::get_id();
  ThreadPool alone(1);
  std::vector<std::thread::id> ids(10);
  alone.For(10, [&](size_t part) { ids[part] = std::this_thread::get_id(); });
  EXPECT_THAT(ids, Each(caller));
  ThreadPool pool(4);
  pool.For(1, [&](size_t) { ids[0] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], caller);
}

TEST(ThreadPoolTest, HasNoMoreThreadsThanItWasGiven) {
  ThreadPool pool(3);
  absl::Mutex mu;
  std::set<std::thread::id> ids;
  for (int i = 0; i < 200; ++i) {
    pool.For(16, [&](size_t) {
      absl::MutexLock lock(&mu);
      ids.insert(std::this_thread::get_id());
    });
  }
  EXPECT_LE(ids.size(), 3u);
}

TEST(ThreadPoolTest, ServesSeveralCallersAtOnce) {
  ThreadPool pool(3);
  constexpr int kCallers = 4;
  constexpr int kRounds = 50;
  constexpr size_t kParts = 100;
  std::atomic<size_t> done{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::atomic<size_t> parts{0};
        pool.For(kParts, [&](size_t) { ++parts; });
        EXPECT_EQ(parts, kParts);
        done += parts;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, kCallers * kRounds * kParts);
}

}  // namespace
}  // namespace sluice
