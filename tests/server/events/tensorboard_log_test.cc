// Event files, as a reader in Python sees them that shares no code with the writer.

#include "server/events/tensorboard_log.h"

#include <filesystem>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/events/crc32c.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Crc32cTest, HasThePublishedValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AA);    // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43);  // the same
}

class TensorBoardLogTest : public ::testing::Test {
 protected:
  TensorBoardLogTest() : directory_(::testing::TempDir() + "/board") {
    std::filesystem::remove_all(directory_);
    EXPECT_THAT(MakeEventDirectory(directory_), IsOk());
    path_ = EventFilePath(directory_, start_, "node7");
    moment_.time = start_ + absl::Seconds(1);
    moment_.state.set_step(40);
    moment_.state.set_learning_rate(0.25);
    news_.changes = {{JobChange::Kind::kStep}};
  }

  void Open() {
    log_ = std::make_unique<TensorBoardLog>(
        std::make_unique<RecordFile>(path_, OpenToAppend(path_).value(),
                                     std::make_unique<HeldExecutor>()),
        start_);
  }

  // The lines of tests/server/events/read_event_file.py.
  std::vector<std::string> Read() const {
    auto reader = Process::Start(
        {"/usr/bin/python3", RunfilePath("tests/server/events/read_event_file.py"), path_});
    EXPECT_TRUE(reader.ok()) << reader.status();
    EXPECT_THAT((*reader)->Wait(), IsOkAndHolds(0)) << (*reader)->output();
    return absl::StrSplit((*reader)->output(), '\n', absl::SkipEmpty());
  }

  const absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);
  std::string directory_;
  std::string path_;
  JobMoment moment_;
  JobNews news_;
  std::unique_ptr<TensorBoardLog> log_;
};

TEST_F(TensorBoardLogTest, ANameOfAFileHasItsTimeAndItsHost) {
  EXPECT_EQ(path_, directory_ + "/events.out.tfevents.1700000000.node7");
}

TEST_F(TensorBoardLogTest, AnotherReaderFindsWhatWasWritten) {
  Open();
  news_.loss = 1.5;
  news_.staleness = 2.25;
  news_.rates = JobRates{10, 20, 300, 400};
  log_->Look(moment_, news_);
  log_->End();
  EXPECT_THAT(Read(), ElementsAre("1700000000.00 step 0: brain.Event:2",
                                  "1700000001.00 step 40: learning rate 0.25",
                                  "1700000001.00 step 40: loss 1.5",
                                  "1700000001.00 step 40: speed/bytes received per second 300.0",
                                  "1700000001.00 step 40: speed/bytes sent per second 400.0",
                                  "1700000001.00 step 40: speed/pushes per second 20.0",
                                  "1700000001.00 step 40: speed/steps per second 10.0",
                                  "1700000001.00 step 40: staleness 2.25"));
}

TEST_F(TensorBoardLogTest, WritesEachResultOnceAndNothingWithoutAStep) {
  Open();
  news_.changes.clear();
  log_->Look(moment_, news_);
  moment_.results["test accuracy"] = 0.875;
  log_->Look(moment_, news_);
  log_->Look(moment_, news_);
  log_->End();
  EXPECT_THAT(Read(), ElementsAre("1700000000.00 step 0: brain.Event:2",
                                  "1700000001.00 step 40: result/test accuracy 0.875"));
}

TEST_F(TensorBoardLogTest, AMeasurementIsAtTheStepThatWasEvaluated) {
  Open();
  news_.changes = {{JobChange::Kind::kMeasured}, {JobChange::Kind::kStep}};
  v1::LastMeasurement& measured = *moment_.state.mutable_measurement();
  measured.set_step(38);
  (*measured.mutable_results())["test accuracy"] = 0.5;
  (*measured.mutable_results())["test loss"] = 1.5;
  log_->Look(moment_, news_);
  log_->End();
  EXPECT_THAT(Read(), ElementsAre("1700000000.00 step 0: brain.Event:2",
                                  "1700000001.00 step 38: measured/test accuracy 0.5",
                                  "1700000001.00 step 38: measured/test loss 1.5",
                                  "1700000001.00 step 40: learning rate 0.25"));
}

TEST_F(TensorBoardLogTest, AServerThatStartsAgainInTheSameSecondContinuesTheFile) {
  Open();
  Open();
  log_->Look(moment_, news_);
  log_->End();
  EXPECT_THAT(Read(), ElementsAre("1700000000.00 step 0: brain.Event:2",
                                  "1700000000.00 step 0: brain.Event:2",
                                  "1700000001.00 step 40: learning rate 0.25"));
}

TEST(MakeEventDirectoryTest, NamesTheDirectoryThatCannotBeMade) {
  EXPECT_THAT(MakeEventDirectory("/nowhere/board"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("cannot create the directory /nowhere/board: No such file")));
}

}  // namespace
}  // namespace sluice
