#include "worker/training/run_record.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LearnReport Batch(uint64_t step, float loss, uint64_t staleness = 0) {
  LearnReport report;
  report.step = Step(step);
  report.loss = loss;
  report.staleness = staleness;
  report.exchange = absl::Milliseconds(125);
  return report;
}

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest() {
    std::filesystem::remove(path_);
    clock_.Advance(absl::UnixEpoch() + absl::Seconds(5000) - clock_.Now());
  }

  std::unique_ptr<RunRecord> Open(uint32_t worker = 1) {
    Place place;
    place.index = worker;
    place.workers = 3;
    auto record = RunRecord::Open(path_, clock_);
    EXPECT_THAT(record, IsOk());
    (*record)->Begin(place);
    return *std::move(record);
  }

  std::vector<std::string> Lines() const {
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  FakeClock clock_;
  const std::string path_ = ::testing::TempDir() + "/record.json";
};

TEST_F(RunRecordTest, WritesALineASecondWithWhatWasNew) {
  const auto record = Open();
  clock_.Advance(absl::Milliseconds(500));
  record->Note(0, Batch(7, 2, 1), 32);
  EXPECT_THAT(Lines(), IsEmpty());
  clock_.Advance(absl::Milliseconds(750));
  record->Note(0, Batch(8, 1, 4), 32);
  record->Note(1, Batch(9, 0.5F), 16);
  record->Finish();
  record->Finish();
  EXPECT_THAT(record->status(), IsOk());
  EXPECT_THAT(
      Lines(),
      ElementsAre(R"({"worker":1,"workers":3,"time":5001.25,"seconds":1.25,"epoch":1,"step":8,)"
                  R"("samples":64,"loss":1.5,"staleness":2.5,"exchange":0.25})",
                  R"({"worker":1,"workers":3,"time":5001.25,"seconds":1.25,"epoch":2,"step":9,)"
                  R"("samples":16,"loss":0.5,"staleness":0.0,"exchange":0.125})"));
}

TEST_F(RunRecordTest, AddsTheTestToWhatOthersWrote) {
  Open(0)->AddTest(ResultOf({100, 0.25, 0.75, 1}));
  Open(2)->AddTest(ResultOf({100, std::numeric_limits<double>::quiet_NaN(), 0.5, 1}));
  EXPECT_THAT(Lines(),
              ElementsAre(R"({"worker":0,"workers":3,"time":5000.0,"seconds":0.0,"step":0,)"
                          R"("test_samples":100,"test_loss":0.25,"test_accuracy":0.75})",
                          R"({"worker":2,"workers":3,"time":5000.0,"seconds":0.0,"step":0,)"
                          R"("test_samples":100,"test_loss":null,"test_accuracy":0.5})"));
}

TEST_F(RunRecordTest, SaysWhichFileCannotBeWritten) {
  EXPECT_THAT(RunRecord::Open("/nowhere/record.json", clock_),
              HasCode(absl::StatusCode::kUnavailable,
                      "cannot write /nowhere/record.json; give --json another file"));
}

TEST_F(RunRecordTest, LetsTrainingGoOnWithoutSpace) {
  const auto record = RunRecord::Open("/dev/full", clock_);
  ASSERT_THAT(record, IsOk());
  (*record)->Begin(Place());
  (*record)->Note(0, Batch(1, 1), 1);
  (*record)->Finish();
  (*record)->Note(0, Batch(2, 1), 1);
  (*record)->Finish();
  EXPECT_THAT((*record)->status(), HasCode(absl::StatusCode::kUnavailable, _));
}

}  // namespace
}  // namespace sluice
