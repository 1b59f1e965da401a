// Snapshots stay as they were while later steps change the tables.

#include <atomic>
#include <deque>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr RowId kIds = 600;

// After step s, row i is −s if i divides by (s mod 3 + 1) … so the truth is kept beside.
class StepsTest : public testing::Test {
 protected:
  explicit StepsTest() : world_({Table()}, Threads()) { world_.Start(); }

  static TableSpec Table() {
    TableSpec table = TableOf("items", 1);
    table.evict_after = 2;
    return table;
  }

  static TableWorld::Options Threads() {
    TableWorld::Options options;
    options.threads = 2;
    return options;
  }

  // Step s subtracts s from the rows whose id has the remainder of s modulo 5.
  void MakeStep() {
    const uint64_t step = world_.step() + 1;
    RowIds ids;
    for (RowId id = step % 5; id < kIds; id += 5) ids.ids.push_back(id);
    world_.Push({ids}, Values(ids.ids.size(), static_cast<float>(step)));
    world_.MakeStep();
  }

  static std::vector<RowId> AllIds() {
    std::vector<RowId> ids(kIds);
    for (RowId id = 0; id < kIds; ++id) ids[id] = id;
    return ids;
  }

  static Values RowsOf(const RowSnapshot& snapshot) {
    Values rows(kIds);
    snapshot.Read(0, AllIds(), absl::MakeSpan(rows));
    return rows;
  }

  TableWorld world_;
};

// What the rows are after `steps` steps, by a simulation of its own.
Values TruthAfter(uint64_t steps) {
  Values rows(kIds);
  std::vector<uint64_t> touched(kIds);
  for (uint64_t step = 1; step <= steps; ++step) {
    for (RowId id = 0; id < kIds; ++id) {
      if (id % 5 == step % 5) {
        rows[id] -= static_cast<float>(step);
        touched[id] = step;
      } else if (BucketOf(id) == step % kRowBuckets && touched[id] + 2 < step) {
        rows[id] = 0;
      }
    }
  }
  return rows;
}

using SnapshotsTest = StepsTest;

TEST_F(SnapshotsTest, AllSnapshotsStayAsTheyWere) {
  std::vector<TableWorld::Snapshots> snapshots = {world_.latest()};
  for (uint64_t step = 1; step <= 300; ++step) {
    MakeStep();
    if (step % 7 == 0) snapshots.push_back(world_.latest());
  }
  for (size_t i = 0; i < snapshots.size(); ++i) {
    ASSERT_EQ(RowsOf(*snapshots[i][0]), TruthAfter(i * 7)) << "step " << i * 7;
  }
}

TEST_F(SnapshotsTest, SnapshotsMayEndInAnyOrder) {
  std::vector<TableWorld::Snapshots> snapshots;
  for (uint64_t step = 1; step <= 60; ++step) {
    MakeStep();
    snapshots.push_back(world_.latest());
  }
  for (size_t i = 0; i < snapshots.size(); i += 2) snapshots[i].clear();
  snapshots[1].clear();
  for (size_t i = 3; i < snapshots.size(); i += 2) {
    ASSERT_EQ(RowsOf(*snapshots[i][0]), TruthAfter(i + 1));
    snapshots[i].clear();
  }
  EXPECT_EQ(RowsOf(*world_.latest()[0]), TruthAfter(60));
}

TEST_F(SnapshotsTest, ASnapshotOutlivesItsTables) {
  std::shared_ptr<const RowSnapshot> snapshot;
  {
    TableWorld world({TableOf("items", 1)});
    world.Push({{0, {1}}}, {1});
    world.MakeStep();
    snapshot = world.latest()[0];
  }
  Values row(1);
  snapshot->Read(0, {1}, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(-1));
}

TEST_F(SnapshotsTest, AStepThatCopiesHasTheRowsOfBefore) {
  MakeStep();
  const Values before = RowsOf(*world_.latest()[0]);
  world_.Push({{0, {1}}}, {5});
  EXPECT_FALSE(world_.Prepare().has_value());
  world_.Copy();
  EXPECT_EQ(RowsOf(*world_.latest()[0]), before);
}

TEST_F(SnapshotsTest, ARangeOfAnOldStepHasTheRowsOfThatStep) {
  for (int step = 0; step < 4; ++step) MakeStep();
  const auto old = world_.latest()[0];
  for (int step = 0; step < 40; ++step) MakeStep();
  Values found(kIds);
  size_t rows = 0;
  for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
    RowId last = 0;
    old->ForEachRow(0, bucket, Step(0), [&](const StoredRow& row) {
      EXPECT_EQ(BucketOf(row.id), bucket);
      EXPECT_LE(last, row.id);
      EXPECT_EQ(row.touched.value() % 5, row.id % 5);
      EXPECT_LE(row.touched.value(), 4);
      last = row.id;
      found[row.id] = row.elements[0];
      ++rows;
    });
  }
  EXPECT_EQ(found, TruthAfter(4));
  EXPECT_GT(rows, kIds / 2);
}

TEST_F(SnapshotsTest, ReadersSeeTheirStepWhileStepsAreMade) {
  constexpr uint64_t kSteps = 150;
  std::vector<Values> truth;
  for (uint64_t step = 0; step <= kSteps; ++step) truth.push_back(TruthAfter(step));
  absl::Mutex mu;
  std::deque<std::pair<uint64_t, std::shared_ptr<const RowSnapshot>>> published;
  published.emplace_back(0, world_.latest()[0]);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  const auto read = [&](size_t which) {
    while (!ends) {
      std::pair<uint64_t, std::shared_ptr<const RowSnapshot>> at;
      {
        absl::MutexLock lock(&mu);
        at = published[which % published.size()];
      }
      if (RowsOf(*at.second) != truth[at.first]) ++wrong;
    }
  };
  std::thread oldest(read, 0);
  std::thread other(read, 5);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    MakeStep();
    absl::MutexLock lock(&mu);
    published.emplace_back(step, world_.latest()[0]);
    if (published.size() > 6) published.pop_front();
  }
  ends = true;
  oldest.join();
  other.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sluice
