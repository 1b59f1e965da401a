// The disk of a server's tables fills while it trains. No row is lost, and all goes on when there
// is room again.

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tables/disk/disk_file.h"
#include "tests/server/tables/large_tables.h"
#include "tests/testing/process/own_namespaces.h"
#include "tests/testing/process/tiny_disk.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kDisk = 24 << 20;
constexpr uint32_t kMostSteps = 1000;  // more than are needed to fill it

class FullTableDiskTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { entered_ = EnterOwnNamespaces(OwnNamespaces::kMounts); }

  void SetUp() override {
    if (!entered_.ok()) GTEST_SKIP() << entered_.message();
    auto mounted = TinyDisk::Mount(::testing::TempDir() + "tiny_disk", kDisk);
    if (!mounted.ok()) GTEST_SKIP() << mounted.status().message();
    disk_ = *std::move(mounted);
    TableWorld::Options options;
    options.optimizer = {AdamOptions()};
    memory_ = std::make_unique<TableWorld>(LargeTables(), options);
    options.memory.most_bytes = kLittle;
    options.memory.disk = *RowDisk::Open(disk_->path());
    world_ = std::make_unique<TableWorld>(LargeTables(), options);
  }

  void TearDown() override { world_ = nullptr; }  // before its disk

  uint64_t bytes() const { return world_->status(0).bytes + world_->status(1).bytes; }
  void Step() {
    TrainLarge(step_, *memory_);
    TrainLarge(step_, *world_);
    ++step_;
  }
  absl::Status FitsNewRows() const {
    std::vector<RowId> ids(1000);
    for (RowId i = 0; i < ids.size(); ++i) ids[i] = kIds + i;
    return world_->server().CheckFits(*StagedRowsOf(world_->layout(), {{1, ids}}, Values(4000)));
  }

  static absl::Status entered_;
  std::unique_ptr<TinyDisk> disk_;
  std::unique_ptr<TableWorld> memory_, world_;
  uint32_t step_ = 0;
};

absl::Status FullTableDiskTest::entered_;

TEST_F(FullTableDiskTest, RowsStayInMemoryUntilThereIsRoom) {
  while (step_ < 30) Step();
  ASSERT_THAT(FitsNewRows(), IsOk());
  ASSERT_THAT(disk_->Fill(), IsOk());
  while (bytes() < kLittle * 3 / 2 && step_ < kMostSteps) Step();
  ASSERT_LT(step_, kMostSteps) << "the disk did not fill";
  EXPECT_THAT(FitsNewRows(),
              IsError(Reason::kTableFull, HasSubstr("make room on the disk of --table-dir")));
  EXPECT_TRUE(AllRows(memory_->latest()) == AllRows(world_->latest()));
  ASSERT_THAT(disk_->Free(), IsOk());
  const uint32_t last = step_ + 100;
  while (!FitsNewRows().ok() && step_ < last) Step();
  EXPECT_LT(step_, last) << "rows did not go to the disk again";
  EXPECT_LE(bytes(), kLittle / 4 * 5);
  EXPECT_TRUE(AllRows(memory_->latest()) == AllRows(world_->latest()));
}

}  // namespace
}  // namespace sluice
