#include "server/durable/rows/rows_store.h"

#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/row_chain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RowsStoreTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<RowFile>> Save(uint64_t step, uint64_t incarnation = 1) {
    rows_.Make(step, {1, step}, {static_cast<float>(step)});
    return store_.Save({"job", Incarnation(incarnation), Step(step), *layout_, slots_},
                       *rows_.Snapshot());
  }

  // The steps of the files that a checkpoint of this step needs.
  std::vector<uint64_t> StepsOf(const std::vector<RowFile>& files) {
    std::vector<uint64_t> steps;
    for (const RowFile& file : files) steps.push_back(file.step.value());
    return steps;
  }

  // The incarnations and steps of the files that are there.
  std::vector<std::pair<uint64_t, uint64_t>> There() {
    std::vector<std::pair<uint64_t, uint64_t>> there;
    const auto files = files_.List("d");
    for (const std::string& file : *files) {
      const auto name = RowsName::Parse(file);
      if (name.has_value()) there.emplace_back(name->incarnation.value(), name->step.value());
    }
    return there;
  }

  void Keep(const std::vector<std::pair<uint64_t, uint64_t>>& checkpoints) {
    std::vector<IncarnationAndStep> keep;
    for (const auto& [incarnation, step] : checkpoints) keep.emplace_back(incarnation, step);
    store_.RemoveOthers(keep);
  }

  FaultyFiles files_;
  DirectorySync sync_{files_, "d"};
  RowsStore store_{files_, "d", {}, sync_};
  const std::shared_ptr<const Layout> layout_ = LayoutWithTables();
  const std::vector<RowSlots> slots_ = SlotsOfTables();
  RowsInMemory rows_;
};

TEST_F(RowsStoreTest, EachEighthFileHasAllRows) {
  for (uint64_t step = 1; step <= 8; ++step) EXPECT_THAT(*Save(step), SizeIs(step));
  EXPECT_THAT(StepsOf(*Save(9)), ElementsAre(9));
  EXPECT_THAT(StepsOf(*Save(10)), ElementsAre(9, 10));
}

TEST_F(RowsStoreTest, ANewIncarnationBeginsWithAllRows) {
  ASSERT_THAT(Save(1), IsOk());
  EXPECT_THAT(StepsOf(*Save(2, 2)), ElementsAre(2));
  EXPECT_THAT(StepsOf(*Save(3, 2)), ElementsAre(2, 3));
}

TEST_F(RowsStoreTest, AStepThatIsSavedAgainHasTheSameFiles) {
  ASSERT_THAT(Save(1), IsOk());
  const auto first = Save(2);
  files_.StopAfter(0);
  const auto again = Save(2);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(StepsOf(*again), StepsOf(*first));
  EXPECT_EQ(again->back().checksum, first->back().checksum);
}

TEST_F(RowsStoreTest, AfterAFullDiskTheNextFileHasWhatWasMissed) {
  ASSERT_THAT(Save(1), IsOk());
  files_.SetRoom(100);
  EXPECT_THAT(Save(2), HasCode(absl::StatusCode::kResourceExhausted, ::testing::_));
  EXPECT_THAT(There(), ElementsAre(std::pair(1, 1)));
  files_.SetRoom(absl::nullopt);
  const auto saved = Save(3);
  ASSERT_THAT(saved, IsOk());
  EXPECT_THAT(StepsOf(*saved), ElementsAre(1, 3));
  const auto chain = RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(3), {{{}, *saved}}},
                                    *layout_, true);
  EXPECT_THAT(RowsOfSaved(**chain), IsOkAndHolds(rows_.rows()));
}

// Wherever a machine stops, a file with its name is whole.
TEST_F(RowsStoreTest, WhereverItStopsTheFilesBeforeAreWhole) {
  const auto first = Save(1);
  for (uint64_t operations = 0;; ++operations) {
    files_.StopAfter(operations);
    DirectorySync sync(files_, "d");
    RowsStore store(files_, "d", {}, sync);
    const auto saved =
        store.Save({"job", Incarnation(2), Step(2), *layout_, slots_}, *rows_.Snapshot());
    files_.StopAfter(absl::nullopt);
    files_.LoseUnsynced();
    EXPECT_THAT(RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(1), {{{}, *first}}},
                               *layout_, true),
                IsOk());
    if (!saved.ok()) {
      EXPECT_THAT(There(), ElementsAre(std::pair(1, 1))) << operations << " operations";
      continue;
    }
    EXPECT_THAT(RowChain::Open(files_, {{"d"}, "job", Incarnation(2), Step(2), {{{}, *saved}}},
                               *layout_, true),
                IsOk());
    EXPECT_GT(operations, 5u);
    return;
  }
}

TEST_F(RowsStoreTest, AfterAFailedSyncNothingMoreIsWritten) {
  uint64_t operations = 0;
  absl::Status error;
  do {
    files_.StopAfter(operations++);
    error = Save(operations).status();
    files_.StopAfter(absl::nullopt);
  } while (sync_.error().ok());
  const auto there = There();
  EXPECT_EQ(Save(100).status(), sync_.error());
  EXPECT_EQ(There(), there);
}

TEST_F(RowsStoreTest, KeepsWhatKeptCheckpointsNeed) {
  for (uint64_t step = 1; step <= 10; ++step) ASSERT_THAT(Save(step), IsOk());
  Keep({{1, 10}, {1, 9}, {1, 3}});
  EXPECT_THAT(There(), ElementsAre(std::pair(1, 1), std::pair(1, 2), std::pair(1, 3),
                                   std::pair(1, 9), std::pair(1, 10)));
  Keep({{1, 10}});
  EXPECT_THAT(There(), ElementsAre(std::pair(1, 9), std::pair(1, 10)));
}

TEST_F(RowsStoreTest, KeepsWhatIsNewerThanAllCheckpoints) {
  for (uint64_t step = 1; step <= 3; ++step) ASSERT_THAT(Save(step), IsOk());
  ASSERT_THAT(Save(4, 2), IsOk());
  Keep({{1, 1}});
  EXPECT_THAT(There(), SizeIs(4));
  Keep({{2, 4}});
  EXPECT_THAT(There(), ElementsAre(std::pair(2, 4)));
  Keep({});
  EXPECT_THAT(There(), SizeIs(1));
}

TEST_F(RowsStoreTest, WhatADamagedFileMayNeedStays) {
  for (uint64_t step = 1; step <= 3; ++step) ASSERT_THAT(Save(step), IsOk());
  files_.BytesOf("d/rows-000001-000000000003.sluice")[20] ^= 1;
  Keep({{1, 3}});
  EXPECT_THAT(There(), SizeIs(3));
}

TEST_F(RowsStoreTest, RemovesUnfinishedFilesAndItsShareOfOthers) {
  for (const char* name :
       {"d/rows-000001-000000000001.sluice.unfinished", "d/rows-000001-000000000001-2-of-4.sluice",
        "d/rows-000001-000000000001-3-of-4.sluice"}) {
    ASSERT_THAT(files_.Create(name), IsOk());
  }
  DirectorySync sync(files_, "d");
  const RowsStore second(files_, "d", {1, 2}, sync);
  second.RemoveOthers({{Incarnation(2), Step(1)}});
  EXPECT_THAT(*files_.List("d"), ElementsAre("rows-000001-000000000001-2-of-4.sluice",
                                             "rows-000001-000000000001.sluice.unfinished"));
  Keep({{2, 1}});
  EXPECT_THAT(*files_.List("d"), IsEmpty());
}

}  // namespace
}  // namespace sluice
