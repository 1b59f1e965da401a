#include "worker/training/trainer.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Rows = std::vector<int64_t>;

// A Learner that only records the batches that it gets.
class FakeLearner final : public Learner {
 public:
  explicit FakeLearner(uint32_t index = 0, uint32_t workers = 1) {
    place_.index = index;
    place_.workers = workers;
  }

  Place place() const override { return place_; }
  absl::StatusOr<LearnReport> Learn(Batch batch) override {
    if (batches.size() == fail_after) return absl::UnavailableError("the server is gone");
    batches.push_back(batch.labels);
    inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
    LearnReport report;
    report.step = Step(batches.size());
    return report;
  }
  absl::Status Finish(bool) override {
    finished = true;
    return absl::OkStatus();
  }
  void Fail(const absl::Status&) override {}
  absl::StatusOr<TestResult> Evaluate() override { return TestResult(); }
  absl::Status Report(const Results&) override { return absl::OkStatus(); }

  void set_batches_done(int64_t batches) { place_.batches_done = batches; }
  void set_earlier_launches(std::vector<BatchDeal::Launch> launches) {
    place_.earlier_launches = std::move(launches);
  }

  std::vector<Rows> batches;
  std::vector<float> inputs;
  size_t fail_after = SIZE_MAX;
  bool finished = false;

 private:
  Place place_;
};

// Images of two pixels. The label of an image is its row.
Dataset DataOf(int64_t size) {
  Dataset data;
  data.form = {1, 1, 2, size};
  for (int64_t row = 0; row < size; ++row) {
    data.labels.push_back(static_cast<uint8_t>(row));
    data.images.insert(data.images.end(), {static_cast<uint8_t>(row), 255});
  }
  return data;
}

TrainerOptions Batches(int batch_size, int epochs = 1, int64_t max_steps = 0) {
  TrainerOptions options;
  options.batch_size = batch_size;
  options.epochs = epochs;
  options.max_steps = max_steps;
  return options;
}

// The batches that this learner is given.
std::vector<Rows> BatchesOf(FakeLearner learner, const TrainerOptions& options, int64_t size) {
  EXPECT_THAT(Train(options, DataOf(size), learner, nullptr), IsOk());
  EXPECT_FALSE(learner.finished);
  return learner.batches;
}

Rows Sorted(const std::vector<Rows>& batches) {
  Rows rows;
  for (const Rows& batch : batches) rows.insert(rows.end(), batch.begin(), batch.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(TrainerTest, GoesOnWithTheBatchesThatAreLeft) {
  const std::vector<Rows> all = BatchesOf(FakeLearner(), Batches(3, 2), 12);
  FakeLearner successor;
  successor.set_batches_done(5);
  EXPECT_EQ(BatchesOf(successor, Batches(3, 2), 12), std::vector<Rows>(all.begin() + 5, all.end()));
  successor.set_batches_done(9);
  EXPECT_THAT(BatchesOf(successor, Batches(3, 2), 12), IsEmpty());
}

// 96 rows in batches of 4, two epochs. Two workers stop after 7 steps, and four go on.
TEST(TrainerTest, AnotherNumberOfWorkersTakesTheRowsThatAreLeft) {
  std::vector<Rows> batches;
  for (uint32_t index = 0; index < 2; ++index) {
    const auto dealt = BatchesOf(FakeLearner(index, 2), Batches(4, 2, 7), 96);
    batches.insert(batches.end(), dealt.begin(), dealt.end());
  }
  for (uint32_t index = 0; index < 4; ++index) {
    FakeLearner learner(index, 4);
    learner.set_earlier_launches({{7, 7}});
    const auto dealt = BatchesOf(learner, Batches(4, 2), 96);
    batches.insert(batches.end(), dealt.begin(), dealt.end());
  }
  Rows twice;
  for (int64_t row = 0; row < 96; ++row) twice.insert(twice.end(), 2, row);
  EXPECT_EQ(Sorted(batches), twice);
}

TEST(TrainerTest, CountsTheStepsOfEarlierLaunches) {
  FakeLearner learner(0, 3);
  learner.set_earlier_launches({{7, 6}, {2}});
  EXPECT_THAT(BatchesOf(learner, Batches(4, 2, 11), 96), SizeIs(2));
  EXPECT_THAT(BatchesOf(learner, Batches(4, 2, 9), 96), IsEmpty());
}

TEST(TrainerTest, SeesEveryRowOnceInAnEpoch) {
  const std::vector<Rows> batches = BatchesOf(FakeLearner(), Batches(3), 12);
  EXPECT_THAT(batches, SizeIs(4));
  EXPECT_THAT(batches, Each(SizeIs(3)));
  EXPECT_EQ(Sorted(batches), Rows({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(TrainerTest, SharesTheRowsWithTheOtherWorkers) {
  const std::vector<Rows> first = BatchesOf(FakeLearner(0, 2), Batches(2), 12);
  const std::vector<Rows> second = BatchesOf(FakeLearner(1, 2), Batches(2), 12);
  EXPECT_THAT(first, SizeIs(3));
  EXPECT_THAT(second, SizeIs(3));
  std::vector<Rows> both = first;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(Sorted(both), Rows({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(TrainerTest, TakesSomebodysPartBeyondTheWorkersLaunched) {
  EXPECT_EQ(BatchesOf(FakeLearner(5, 2), Batches(2), 12),
            BatchesOf(FakeLearner(1, 2), Batches(2), 12));
}

TEST(TrainerTest, ShufflesEachEpochAnew) {
  const std::vector<Rows> batches = BatchesOf(FakeLearner(), Batches(64, 2), 64);
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_NE(batches[0], batches[1]);
  EXPECT_EQ(Sorted({batches[0]}), Sorted({batches[1]}));
}

TEST(TrainerTest, OrdersTheRowsByTheSeed) {
  TrainerOptions options = Batches(64);
  const std::vector<Rows> batches = BatchesOf(FakeLearner(), options, 64);
  EXPECT_EQ(BatchesOf(FakeLearner(), options, 64), batches);
  options.seed = 2;
  EXPECT_NE(BatchesOf(FakeLearner(), options, 64), batches);
}

TEST(TrainerTest, LeavesOutTheRowsThatFillNoBatch) {
  EXPECT_THAT(BatchesOf(FakeLearner(), Batches(4, 3), 11), SizeIs(6));
}

TEST(TrainerTest, EndsAfterTheStepsAllowed) {
  const std::vector<Rows> all = BatchesOf(FakeLearner(), Batches(2, 2), 8);
  ASSERT_THAT(all, SizeIs(8));
  EXPECT_EQ(BatchesOf(FakeLearner(), Batches(2, 2, 5), 8),
            std::vector<Rows>(all.begin(), all.begin() + 5));
  EXPECT_EQ(BatchesOf(FakeLearner(), Batches(2, 2, 9), 8), all);
}

TEST(TrainerTest, DoesNothingInNoEpochs) {
  EXPECT_THAT(BatchesOf(FakeLearner(), Batches(2, 0), 8), IsEmpty());
}

TEST(TrainerTest, StopsAtAnError) {
  FakeLearner learner;
  learner.fail_after = 3;
  EXPECT_THAT(Train(Batches(2), DataOf(20), learner, nullptr),
              HasCode(absl::StatusCode::kUnavailable, "the server is gone"));
  EXPECT_THAT(learner.batches, SizeIs(3));
}

TEST(TrainerTest, RefusesDataThatIsTooLittleForEveryWorker) {
  FakeLearner learner(0, 4);
  EXPECT_THAT(Train(Batches(3), DataOf(11), learner, nullptr),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("the dataset has 11 rows, expected at least 12")));
  EXPECT_THAT(learner.batches, IsEmpty());
}

TEST(TrainerTest, ChangesImagesByTheSeed) {
  TrainerOptions options = Batches(4, 20);
  options.augmentation.mirror = true;
  const auto inputs_with = [&](uint64_t seed, int threads) {
    options.seed = seed;
    options.data_threads = threads;
    FakeLearner learner;
    EXPECT_THAT(Train(options, DataOf(4), learner, nullptr), IsOk());
    return learner.inputs;
  };
  const std::vector<float> inputs = inputs_with(1, 1);
  EXPECT_EQ(inputs_with(1, 3), inputs);
  EXPECT_NE(inputs_with(2, 1), inputs);
  const float white = inputs[0] > inputs[1] ? inputs[0] : inputs[1];
  const auto first_is_white = [&](size_t i) { return inputs[2 * i] == white; };
  int mirrored = 0;
  for (size_t i = 0; i < inputs.size() / 2; ++i) mirrored += first_is_white(i) ? 1 : 0;
  EXPECT_GT(mirrored, 20);  // of 80
  EXPECT_LT(mirrored, 60);
}

TEST(TrainerTest, RefusesNoThreadsForTheData) {
  TrainerOptions options = Batches(4);
  options.data_threads = 0;
  FakeLearner learner;
  EXPECT_THAT(Train(options, DataOf(4), learner, nullptr),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("found 0 data threads, expected 1 to 64")));
}

TEST(TrainerTest, RefusesChangesThatDoNotFitTheData) {
  TrainerOptions options = Batches(4);
  options.augmentation.padding = 4;
  FakeLearner learner;
  EXPECT_THAT(Train(options, DataOf(4), learner, nullptr),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("the padding is 4")));
  EXPECT_THAT(learner.batches, IsEmpty());
}

TEST(TrainerTest, TellsTheListenerOfEveryBatch) {
  std::vector<std::string> told;
  FakeLearner learner;
  const auto listener = [&](const TrainedBatch& batch) {
    told.push_back(absl::StrCat("epoch ", batch.epoch, " step ", batch.report.step.value(), ": ",
                                batch.samples, ", ", batch.left.value_or(-1), " left"));
  };
  EXPECT_THAT(Train(Batches(2, 2), DataOf(4), learner, listener), IsOk());
  EXPECT_THAT(told, ElementsAre("epoch 0 step 1: 2, 3 left", "epoch 0 step 2: 2, 2 left",
                                "epoch 1 step 3: 2, 1 left", "epoch 1 step 4: 2, 0 left"));
}

TEST(TrainerTest, KnowsNotHowManyBatchesAreLeftIfAStepOfTheServerIsTheEnd) {
  std::vector<absl::optional<int64_t>> told;
  FakeLearner learner;
  TrainerOptions options = Batches(2, 2);
  options.until_step = Step(1);
  const auto listener = [&](const TrainedBatch& batch) { told.push_back(batch.left); };
  EXPECT_THAT(Train(options, DataOf(4), learner, listener), IsOk());
  EXPECT_THAT(told, ElementsAre(absl::nullopt));
}

}  // namespace
}  // namespace sluice
