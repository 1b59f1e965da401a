// A server's directory with checkpoints of a model with tables.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::NotNull;

class RowDirectoryTest : public ::testing::Test {
 protected:
  RowDirectoryTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "rows");
    options_.keep_checkpoints = 1;
  }

  std::unique_ptr<DurableDirectory> Open() {
    auto directory = DurableDirectory::Open(options_, files_);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }

  void Save(DurableDirectory& directory, uint64_t step) {
    rows_.Make(step, {1, step}, {static_cast<float>(step)});
    auto checkpoint = std::make_shared<ShardCheckpoint>(
        KnownCheckpoint({directory.incarnation(), Step(step)}, LayoutWithTables()));
    const auto parameters = std::make_shared<Snapshot>();
    parameters->step = Step(step);
    parameters->values = FloatBuffer::Zeroed(checkpoint->layout->size());
    parameters->rows = rows_.Snapshot();
    checkpoint->parameters = parameters;
    checkpoint->row_slots = SlotsOfTables();
    absl::Notification done;
    directory.saver().Save(std::move(checkpoint), [&](const auto& saved) {
      EXPECT_THAT(saved, IsOk());
      done.Notify();
    });
    done.WaitForNotification();
  }

  std::vector<std::string> FilesOfRows() {
    std::vector<std::string> rows;
    const auto files = files_.List(options_.directory);
    for (const std::string& file : *files) {
      if (RowsName::Parse(file).has_value()) rows.push_back(file);
    }
    return rows;
  }

  FaultyFiles files_;
  DurableOptions options_;
  RowsInMemory rows_;
};

TEST_F(RowDirectoryTest, TheNextServerGetsTheRows) {
  {
    const auto directory = Open();
    for (const uint64_t step : {1, 2}) Save(*directory, step);
  }
  const auto restored = Open()->TakeRestored();
  ASSERT_THAT(restored, NotNull());
  ASSERT_THAT(restored->rows, NotNull());
  EXPECT_THAT(RowsOfSaved(*restored->rows), IsOkAndHolds(rows_.rows()));
  EXPECT_EQ(restored->row_slots, SlotsOfTables());
}

TEST_F(RowDirectoryTest, OnlyFilesThatTheKeptCheckpointNeedsStay) {
  {
    const auto directory = Open();
    for (uint64_t step = 1; step <= 10; ++step) Save(*directory, step);
  }
  EXPECT_THAT(FilesOfRows(),
              ElementsAre("rows-000001-000000000009.sluice", "rows-000001-000000000010.sluice"));
  Save(*Open(), 11);
  EXPECT_THAT(FilesOfRows(), ElementsAre("rows-000002-000000000011.sluice"));
}

}  // namespace
}  // namespace sluice
