#include "server/snapshots/snapshot_store.h"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

const float* MemoryOf(const std::shared_ptr<const Snapshot>& snapshot) {
  return snapshot->values.span().data();
}

// Publishes a step whose elements all equal its number.
std::shared_ptr<const Snapshot> PublishStep(SnapshotStore& store, uint64_t step) {
  std::shared_ptr<Snapshot> snapshot = store.Make();
  snapshot->step = Step(step);
  for (float& value : snapshot->values.span()) value = static_cast<float>(step);
  store.Publish(snapshot);
  return snapshot;
}

bool IsWhole(const Snapshot& snapshot, uint64_t step) {
  const auto values = snapshot.values.span();
  return snapshot.step == Step(step) &&
         std::all_of(values.begin(), values.end(),
                     [step](float value) { return value == static_cast<float>(step); });
}

TEST(SnapshotStoreTest, HasNothingBeforeTheFirstIsPublished) {
  SnapshotStore store(4, SnapshotMemory::kPrivate);
  EXPECT_EQ(store.latest(), nullptr);
  const auto made = store.Make();
  EXPECT_EQ(made->values.size(), 4u);
  EXPECT_EQ(store.latest(), nullptr);
}

TEST(SnapshotStoreTest, GivesTheLatestThatWasPublished) {
  SnapshotStore store(4, SnapshotMemory::kPrivate);
  for (uint64_t step = 0; step < 5; ++step) {
    const auto published = PublishStep(store, step);
    EXPECT_EQ(store.latest(), published);
    EXPECT_TRUE(IsWhole(*store.latest(), step));
  }
}

TEST(SnapshotStoreTest, SharedSnapshotsCanBeReadWhereTheyLie) {
  SnapshotStore store(4, SnapshotMemory::kShared);
  const auto published = PublishStep(store, 7);
  const SharedMemory* const memory = published->values.memory();
  ASSERT_NE(memory, nullptr);
  const auto view = SharedMemoryView::Open(memory->name());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT((*view)->floats(), ::testing::ElementsAre(7, 7, 7, 7));
}

TEST(SnapshotStoreTest, ASharedSnapshotIsOfAnotherGenerationThanTheOneBefore) {
  SnapshotStore store(4, SnapshotMemory::kShared);
  auto first = PublishStep(store, 0);
  const SharedMemory* const memory = first->values.memory();
  const uint64_t generation = memory->generation();
  PublishStep(store, 1);
  EXPECT_EQ(memory->generation(), generation);  // it may still be read
  first = nullptr;
  PublishStep(store, 2);
  ASSERT_EQ(store.latest()->values.memory(), memory);  // used again
  EXPECT_NE(memory->generation(), generation);
}

TEST(SnapshotStoreTest, LeavesAHeldSnapshotAsItIs) {
  SnapshotStore store(4, SnapshotMemory::kPrivate);
  PublishStep(store, 0);
  const std::shared_ptr<const Snapshot> held = store.latest();
  for (uint64_t step = 1; step < 10; ++step) PublishStep(store, step);
  EXPECT_TRUE(IsWhole(*held, 0));
  EXPECT_TRUE(IsWhole(*store.latest(), 9));
}

TEST(SnapshotStoreTest, NeedsTheMemoryOfTwoForAnyNumberOfSteps) {
  SnapshotStore store(1000, SnapshotMemory::kPrivate);
  std::set<const float*> memory;
  for (uint64_t step = 0; step < 100; ++step) memory.insert(MemoryOf(PublishStep(store, step)));
  EXPECT_EQ(memory.size(), 2u);
}

TEST(SnapshotStoreTest, UsesTheMemoryOfAReleasedSnapshotAgain) {
  SnapshotStore store(1000, SnapshotMemory::kPrivate);
  PublishStep(store, 0);
  std::shared_ptr<const Snapshot> held = store.latest();
  const float* const memory = MemoryOf(held);
  EXPECT_NE(MemoryOf(PublishStep(store, 1)), memory);
  held.reset();
  EXPECT_EQ(MemoryOf(PublishStep(store, 2)), memory);
}

TEST(SnapshotStoreTest, TakesBackWhatWasMadeButNeverPublished) {
  SnapshotStore store(1000, SnapshotMemory::kPrivate);
  std::shared_ptr<Snapshot> made = store.Make();
  const float* const memory = MemoryOf(made);
  made.reset();
  EXPECT_EQ(MemoryOf(store.Make()), memory);
}

TEST(SnapshotStoreTest, IsNewestUpToWhereTheNextIsWritten) {
  SnapshotStore store(100, SnapshotMemory::kPrivate);
  const auto latest = PublishStep(store, 0);
  for (const uint64_t end : {0, 1, 100}) EXPECT_EQ(store.newest(end), latest) << end;
  const std::shared_ptr<Snapshot> next = store.Make();
  store.Grow(next, 40);
  EXPECT_EQ(store.newest(40), next);
  EXPECT_EQ(store.newest(41), latest);
  EXPECT_EQ(store.latest(), latest);
  store.Grow(next, 80);
  EXPECT_EQ(store.newest(41), next);
  EXPECT_EQ(store.newest(81), latest);
}

TEST(SnapshotStoreTest, IsNewestThroughoutOncePublished) {
  SnapshotStore store(100, SnapshotMemory::kPrivate);
  PublishStep(store, 0);
  const std::shared_ptr<Snapshot> next = store.Make();
  store.Grow(next, 40);
  store.Publish(next);
  for (const uint64_t end : {40, 41, 100}) EXPECT_EQ(store.newest(end), next) << end;
}

TEST(SnapshotStoreTest, SnapshotsOutliveTheStore) {
  std::shared_ptr<const Snapshot> held;
  {
    SnapshotStore store(4, SnapshotMemory::kPrivate);
    PublishStep(store, 3);
    held = store.latest();
  }
  EXPECT_TRUE(IsWhole(*held, 3));
}

TEST(SnapshotStoreTest, SnapshotsMayBeReleasedOnAnyThread) {
  auto store = std::make_unique<SnapshotStore>(64, SnapshotMemory::kPrivate);
  std::vector<std::shared_ptr<const Snapshot>> held;
  for (uint64_t step = 0; step < 200; ++step) {
    PublishStep(*store, step);
    held.push_back(store->latest());
  }
  std::vector<std::thread> releasing;
  for (size_t part = 0; part < 4; ++part) {
    releasing.emplace_back([&held, part] {
      for (size_t step = part; step < held.size(); step += 4) {
        EXPECT_TRUE(IsWhole(*held[step], step));
        held[step].reset();
      }
    });
  }
  for (uint64_t step = 200; step < 300; ++step)
    EXPECT_TRUE(IsWhole(*PublishStep(*store, step), step));
  store.reset();
  for (std::thread& thread : releasing) thread.join();
}

}  // namespace
}  // namespace sluice
