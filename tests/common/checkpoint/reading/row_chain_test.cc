#include "common/checkpoint/reading/row_chain.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/format/directory_sync.h"
#include "server/durable/rows/rows_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class RowChainTest : public ::testing::Test {
 protected:
  void Save(uint64_t step) {
    saved_ = *store_.Save({"job", Incarnation(1), Step(step), *layout_, slots_}, *rows_.Snapshot());
    step_ = step;
  }

  absl::StatusOr<std::unique_ptr<RowChain>> Open() {
    return RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(step_), {{{}, saved_}}},
                          *layout_, true);
  }

  absl::StatusOr<RowMap> Load() {
    const auto chain = Open();
    if (!chain.ok()) return chain.status();
    return RowsOfSaved(**chain);
  }

  FaultyFiles files_;
  DirectorySync sync_{files_, "d"};
  RowsStore store_{files_, "d", {}, sync_};
  const std::shared_ptr<const Layout> layout_ = LayoutWithTables();
  const std::vector<RowSlots> slots_ = SlotsOfTables();
  RowsInMemory rows_;
  std::vector<RowFile> saved_;
  uint64_t step_ = 0;
};

TEST_F(RowChainTest, AllRowsComeBackFromOneFile) {
  for (RowId id = 0; id < 1000; ++id) {
    const float value = static_cast<float>(id);
    rows_.Make(id % 7 + 1, {0, id}, {value, 1, 2, 3, 4, -value});
    rows_.Make(id % 5 + 1, {1, id * id}, {value});
  }
  rows_.Wait(8, {1, 5}, 3);
  Save(9);
  EXPECT_THAT(saved_, SizeIs(1));
  EXPECT_THAT(Load(), IsOkAndHolds(rows_.rows()));
}

TEST_F(RowChainTest, ANewerFileReplacesRemovesAndMakesAgain) {
  const std::vector<RowId> ids = IdsInBucket(3, 6);
  for (const RowId id : ids) rows_.Make(1, {1, id}, {1});
  Save(1);
  rows_.Make(2, {1, ids[0]}, {2});  // replaced
  rows_.Remove(2, {1, ids[1]});     // removed
  rows_.Remove(2, {1, ids[2]});     // removed, and made again before the file
  rows_.Make(3, {1, ids[2]}, {3});
  rows_.Remove(3, {1, ids[3]});  // removed, and made again in the next file
  Save(3);
  rows_.Make(4, {1, ids[3]}, {4});
  rows_.Remove(4, {1, ids[0]});
  rows_.Wait(4, {1, ids[1]}, 1);  // waits after it was a row
  Save(4);
  EXPECT_THAT(saved_, SizeIs(3));
  EXPECT_THAT(Load(), IsOkAndHolds(rows_.rows()));
  const RowMap expected = {{{1, ids[1]}, {4, 1, {}}},
                           {{1, ids[2]}, {3, 0, {3}}},
                           {{1, ids[3]}, {4, 0, {4}}},
                           {{1, ids[4]}, {1, 0, {1}}},
                           {{1, ids[5]}, {1, 0, {1}}}};
  EXPECT_EQ(rows_.rows(), expected);
}

TEST_F(RowChainTest, WhateverHappensToRowsEachCheckpointHasThem) {
  std::mt19937_64 random(1);
  for (uint64_t step = 1; step <= 60; ++step) {
    for (int change = 0; change < 20; ++change) {
      const RowKey key = {static_cast<uint32_t>(random() % 2), random() % 100};
      const auto found = rows_.rows().find(key);
      const float value = static_cast<float>(random() % 1000);
      if (found != rows_.rows().end() && random() % 3 == 0) {
        rows_.Remove(step, key);
      } else if (random() % 4 == 0) {
        rows_.Wait(step, key, 1);
      } else {
        rows_.Make(step, key, std::vector<float>(key.first == 0 ? 6 : 1, value));
      }
    }
    if (random() % 2 == 0) continue;
    Save(step);
    ASSERT_THAT(Load(), IsOkAndHolds(rows_.rows())) << "step " << step;
  }
}

TEST_F(RowChainTest, AnotherLayoutIsRefused) {
  Save(1);
  TableSpec other = layout_->tables()[0];
  other.width = 3;
  const auto layout = Layout::Create(layout_->ranges(), {other, layout_->tables()[1]});
  ASSERT_THAT(layout, IsOk());
  EXPECT_THAT(RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(1), {{{}, saved_}}},
                             *layout, true),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("rows-000001-000000000001.sluice: ")));
}

TEST_F(RowChainTest, FilesOfAnotherCheckpointAreRefused) {
  Save(1);
  rows_.Make(2, {1, 1}, {1});
  Save(2);
  const RowSource right = {{"d"}, "job", Incarnation(1), Step(2), {{{}, saved_}}};
  EXPECT_THAT(RowChain::Open(files_, right, *layout_, true), IsOk());
  RowSource job = right;
  job.job_id = "another";
  RowSource without_base = right;
  without_base.servers[0].files.erase(without_base.servers[0].files.begin());
  RowSource checksum = right;
  ++checksum.servers[0].files[0].checksum;
  RowSource none = right;
  none.servers[0].files.clear();
  for (const RowSource& wrong : {job, without_base, checksum, none}) {
    EXPECT_THAT(RowChain::Open(files_, wrong, *layout_, true),
                HasCode(absl::StatusCode::kDataLoss, ::testing::_));
  }
}

}  // namespace
}  // namespace sluice
