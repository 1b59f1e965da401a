// Tables for which there is too little memory: their rows go to the disk and come back with the
// same bits.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tables/disk/disk_file.h"
#include "server/tables/row_bucket.h"
#include "tests/server/tables/large_tables.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class DiskTest : public ::testing::Test {
 protected:
  TableWorld::Options Options(uint32_t servers = 1) const {
    TableWorld::Options options;
    options.optimizer = {AdamOptions()};
    options.threads = 2;
    options.servers = servers;
    return options;
  }
  TableWorld::Options WithDisk(uint64_t most_bytes = kLittle, uint32_t servers = 1) const {
    TableWorld::Options options = Options(servers);
    options.memory.most_bytes = most_bytes;
    options.memory.disk = disk_;
    return options;
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "tables");
  const std::shared_ptr<RowDisk> disk_ = *RowDisk::Open(directory_);
};

TEST_F(DiskTest, MakesTheBitsOfMemory) {
  TableWorld memory(LargeTables(), Options());
  TableWorld disk(LargeTables(), WithDisk());
  for (uint32_t step = 0; step < 100; ++step) {
    TrainLarge(step, memory);
    TrainLarge(step, disk);
    ASSERT_EQ(memory.checksums(), disk.checksums()) << step;
  }
  EXPECT_GT(disk.status(0).on_disk, 0);
  EXPECT_GT(disk.status(1).on_disk, 0);
  EXPECT_GT(memory.status(0).removed, 0);
  EXPECT_EQ(memory.status(0).removed, disk.status(0).removed);
  EXPECT_EQ(memory.Rows(memory.latest(), 1, AllIds()), disk.Rows(disk.latest(), 1, AllIds()));
  EXPECT_TRUE(AllRows(memory.latest()) == AllRows(disk.latest()));
}

TEST_F(DiskTest, SeveralServersShareADisk) {
  TableWorld memory(LargeTables(), Options());
  TableWorld disk(LargeTables(), WithDisk(kLittle / 3, 3));
  for (uint32_t step = 0; step < 50; ++step) {
    TrainLarge(step, memory);
    TrainLarge(step, disk);
  }
  EXPECT_GT(disk.status(1).on_disk, 0);
  std::vector<RowOfTable> expected = AllRows(memory.latest());
  std::vector<RowOfTable> found = AllRows(disk.latest());
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_TRUE(found == expected);
}

TEST_F(DiskTest, OldSnapshotsStayAsTheyWere) {
  TableWorld memory(LargeTables(), Options());
  TableWorld disk(LargeTables(), WithDisk());
  std::vector<std::pair<TableWorld::Snapshots, TableWorld::Snapshots>> living;
  for (uint32_t step = 0; step < 60; ++step) {
    TrainLarge(step, memory);
    TrainLarge(step, disk);
    if (step % 13 == 0) living.emplace_back(memory.latest(), disk.latest());
  }
  for (const auto& [expected, found] : living) {
    EXPECT_TRUE(AllRows(expected) == AllRows(found));
    EXPECT_TRUE(AllRows(expected, 20) == AllRows(found, 20));
  }
}

// Rows leave and come back while they are read.
TEST_F(DiskTest, ReadersSeeTheirStepWhileRowsMove) {
  TableWorld world(LargeTables(), WithDisk());
  for (uint32_t step = 0; step < 30; ++step) TrainLarge(step, world);
  const TableWorld::Snapshots held = world.latest();
  const Values before = world.Rows(held, 1, AllIds());
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) ASSERT_TRUE(world.Rows(held, 1, AllIds()) == before);
  });
  for (uint32_t step = 30; step < 60; ++step) TrainLarge(step, world);
  done = true;
  reader.join();
}

TEST_F(DiskTest, MemoryStaysNearItsLimit) {
  TableWorld world(LargeTables(), WithDisk());
  uint64_t most = 0;
  for (uint32_t step = 0; step < 200; ++step) {
    TrainLarge(step, world);
    most = std::max(most, world.status(0).bytes + world.status(1).bytes);
  }
  EXPECT_GT(world.status(0).rows + world.status(1).rows, kIds / 2);
  EXPECT_LT(most, kLittle * 5 / 4);
}

// Rows on the disk are the older ones.
TEST_F(DiskTest, TheSampleOfAgesHasRowsInMemoryAndOnTheDisk) {
  RowShape shape;
  shape.spec = TableOf("items", 4);
  TableMemory limits;
  limits.most_bytes = 4000;  // 2000 for 62 records of 32 bytes
  limits.disk = disk_;
  RowMemory memory(limits, 1);
  RowCounts counts;
  const RowHistory history;
  RowBucket bucket(shape, 0, history, memory, counts);
  const std::vector<float> elements(4);
  for (RowId id = 0; id < 100; ++id) {
    bucket.Load({id, Step(id < 50 ? 1 : 101), 0, absl::MakeConstSpan(elements)});
  }
  const uint64_t on_disk = counts.on_disk;
  ASSERT_GT(on_disk, 30);
  ASSERT_LE(on_disk, 50);
  const RowAges ages = bucket.AgesAt(101, 10);
  EXPECT_EQ(ages.rows, 10);
  const uint64_t of_disk = 10 - 10 * (100 - on_disk) / 100;
  EXPECT_GE(ages.sum, 100 * of_disk);
  EXPECT_LE(ages.sum, 100 * (of_disk + 50 - on_disk));
  EXPECT_EQ(bucket.AgesAt(101, 1000).sum, 50 * 100);
}

TEST_F(DiskTest, RowsOfACheckpointThatIsLargerThanMemoryAreLoaded) {
  TableWorld memory(LargeTables(), Options());
  for (uint32_t step = 0; step < 50; ++step) TrainLarge(step, memory);
  TableWorld disk(LargeTables(), WithDisk());
  for (const auto& [table, id, touched, touches, elements] : AllRows(memory.latest())) {
    disk.server().Load(table, {id, Step(touched), touches, elements});
  }
  EXPECT_LT(disk.status(0).bytes + disk.status(1).bytes, kLittle * 5 / 4);
  disk.Start(memory.step(), memory.server().optimizer_steps());
  EXPECT_TRUE(AllRows(memory.latest()) == AllRows(disk.latest()));
  TrainLarge(50, memory);
  TrainLarge(50, disk);
  EXPECT_EQ(memory.checksums(), disk.checksums());
}

TEST_F(DiskTest, AStepThatIsAbandonedLeavesRowsAsTheyWere) {
  TableWorld memory(LargeTables(), Options());
  TableWorld disk(LargeTables(), WithDisk());
  for (uint32_t step = 0; step < 30; ++step) {
    TrainLarge(step, memory);
    TrainLarge(step, disk);
  }
  const auto cold = AllIds();
  for (TableWorld* const world : {&memory, &disk}) {
    world->Push({{1, cold}}, Values(cold.size() * 4, 1));
    EXPECT_FALSE(world->Prepare().has_value());
    world->Copy();
    TrainLarge(31, *world);
  }
  EXPECT_TRUE(AllRows(memory.latest()) == AllRows(disk.latest()));
}

TEST_F(DiskTest, AnIndexThatIsTooLargeForMemoryIsRefused) {
  TableWorld world(LargeTables(), WithDisk(400'000));
  absl::Status fits;
  for (RowId first = 0; fits.ok() && first < 100'000; first += 1000) {
    std::vector<RowId> ids(1000);
    for (RowId i = 0; i < 1000; ++i) ids[i] = first + i;
    fits = world.server().CheckFits(*StagedRowsOf(world.layout(), {{1, ids}}, Values(4000)));
    if (!fits.ok()) break;
    world.Push({{1, ids}}, Values(4000, 1));
    world.MakeStep();
  }
  EXPECT_THAT(fits, IsError(Reason::kTableFull, HasSubstr("that is the index of rows")));
  EXPECT_GT(world.status(1).rows, 4000);
}

TEST_F(DiskTest, LeavesNothingInItsFolder) {
  TableWorld world(LargeTables(), WithDisk());
  for (uint32_t step = 0; step < 20; ++step) TrainLarge(step, world);
  EXPECT_GT(world.status(1).on_disk, 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST(RowDiskTest, AFolderThatCannotBeMadeIsToldInASentence) {
  EXPECT_THAT(RowDisk::Open("/proc/rows").status(),
              HasCode(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("--table-dir: cannot make a file in /proc/rows: ")));
}

}  // namespace
}  // namespace sluice
