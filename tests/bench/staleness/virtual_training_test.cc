// Training in virtual time, on a valley whose slope at x is x − 1.

#include "tools/bench/staleness/virtual_training.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice::bench {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr int64_t kPerEpoch = 10;

// The slope differs a little from batch to batch, so that the order of the batches shows in the
// bits.
class Valley final : public Workload {
 public:
  explicit Valley(float noise = 0) : noise_(noise) {}

  // Makes the gradient of one batch infinite.
  void BreakAt(int64_t batch) { broken_ = batch; }

  const Layout& layout() const override { return layout_; }
  const std::vector<float>& first_parameters() const override { return first_; }
  int64_t batches_per_epoch() const override { return kPerEpoch; }

  Computed Compute(uint32_t worker, absl::Span<const float> parameters,
                   absl::Span<const int64_t> batches, double rate) override {
    rates_.push_back(rate);
    Computed computed;
    for (const int64_t batch : batches) {
      computed_.push_back(batch);
      computed.loss = static_cast<float>(batch);
      computed.values = {parameters[0] - 1 + noise_ * static_cast<float>(batch % 7)};
      if (batch == broken_) computed.values[0] = std::numeric_limits<float>::infinity();
    }
    computed.samples = static_cast<uint32_t>(batches.size());
    ++pushes_[worker];
    widest_lead_ = std::max(widest_lead_, pushes_[0] - pushes_[1]);
    return computed;
  }

  double Accuracy(absl::Span<const float> parameters) override { return parameters[0]; }

  std::vector<int64_t> SortedBatches() const {
    std::vector<int64_t> sorted = computed_;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  // By how many pushes worker 0 was ahead of worker 1.
  int widest_lead() const { return widest_lead_; }
  std::map<uint32_t, int> pushes() const { return pushes_; }
  const std::vector<double>& rates() const { return rates_; }

 private:
  const float noise_;
  int64_t broken_ = -1;
  const Layout layout_ = ParametersOnly(1);
  const std::vector<float> first_ = {0};
  std::vector<int64_t> computed_;
  std::vector<double> rates_;
  std::map<uint32_t, int> pushes_;
  int widest_lead_ = 0;
};

VirtualTrainingOptions Options(ShardOptions shard, uint32_t workers, int64_t batches,
                               const std::string& compute = "constant",
                               const std::string& slow = "") {
  VirtualTrainingOptions options;
  options.shard = std::move(shard);
  options.shard.expected_workers = workers;
  SgdOptions sgd;
  sgd.learning_rate = 0.5;
  options.optimizer.options = sgd;
  options.batches = batches;
  options.times = *ParseComputeTimes(compute, slow);
  return options;
}

TrainingReport Train(const VirtualTrainingOptions& options, Workload& workload) {
  const auto report = TrainInVirtualTime(options, workload);
  EXPECT_THAT(report, IsOk());
  return report.value_or(TrainingReport());
}

TEST(VirtualTrainingTest, OneWorkerDescendsAsOneProcess) {
  Valley valley;
  const TrainingReport report = Train(Options(Sync(1), 1, 4), valley);
  EXPECT_THAT(report.parameters, ElementsAre(1 - 0.0625F));
  EXPECT_EQ(report.server.step, Step(4));
  EXPECT_EQ(report.time, 4);
  EXPECT_THAT(report.ended, IsOk());
}

TEST(VirtualTrainingTest, EachBatchIsComputedOnce) {
  Valley valley;
  const TrainingReport report = Train(Options(Async(1), 4, 100, "exponential"), valley);
  std::vector<int64_t> all(100);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  EXPECT_EQ(valley.SortedBatches(), all);
  EXPECT_EQ(report.server.step, Step(100));
  EXPECT_EQ(report.server.phase, Phase::kFinished);
}

TEST(VirtualTrainingTest, EquallyFastAsyncWorkersTakeTurns) {
  Valley valley;
  const TrainingReport report = Train(Options(Async(1), 4, 40), valley);
  EXPECT_EQ(report.server.staleness.max(), 3);
  EXPECT_THAT(report.server.staleness.mean(), DoubleEq((0 + 1 + 2 + 36 * 3 + 3) / 40.0));
  EXPECT_EQ(report.time, 10);
}

TEST(VirtualTrainingTest, SyncIsNeverStaleAndWaitsForTheSlowest) {
  Valley valley;
  const TrainingReport report = Train(Options(Sync(4), 4, 40, "constant", "1:5"), valley);
  EXPECT_EQ(report.server.step, Step(10));
  EXPECT_EQ(report.server.staleness.max(), 0);
  EXPECT_EQ(report.time, 50);
}

TEST(VirtualTrainingTest, TheLastStepOfSyncTakesTheBatchesThatAreLeft) {
  Valley valley;
  const TrainingReport report = Train(Options(Sync(4), 4, 10, "exponential"), valley);
  EXPECT_EQ(report.server.step, Step(3));
  EXPECT_EQ(report.server.counters.accepted, 10);
  EXPECT_THAT(report.ended, IsOk());
}

TEST(VirtualTrainingTest, AsyncWaitsForNobody) {
  Valley valley;
  const TrainingReport report = Train(Options(Async(1), 4, 64, "constant", "1:5"), valley);
  EXPECT_EQ(report.time, 20);
  EXPECT_EQ(valley.pushes(), (std::map<uint32_t, int>{{0, 20}, {1, 20}, {2, 20}, {3, 4}}));
}

TEST(VirtualTrainingTest, SspWaitsForTheSlowestBeyondTheSlack) {
  Valley valley;
  Train(Options(Ssp(2, 2), 2, 60, "constant", "1:10"), valley);
  EXPECT_EQ(valley.widest_lead(), 3);
}

TEST(VirtualTrainingTest, BackupDropsTheGradientsOfTheSlow) {
  Valley valley;
  const TrainingReport report = Train(Options(Backup(3, 4), 4, 64, "constant", "1:5"), valley);
  EXPECT_THAT(report.server.counters.stale, Gt(0));
  EXPECT_EQ(report.server.counters.accepted + report.server.counters.stale, 64);
  EXPECT_EQ(report.server.staleness.max(), 0);
  EXPECT_EQ(report.time, 20);
}

TEST(VirtualTrainingTest, BoundedDropsWhatIsTooOld) {
  Valley valley;
  const TrainingReport report = Train(Options(Bounded(1, 6), 4, 64, "constant", "1:5"), valley);
  EXPECT_EQ(report.server.counters.stale, 4);  // all of the slow worker's
  EXPECT_EQ(report.server.step, Step(60));
}

std::vector<float> NoisyRun(const ShardOptions& mode, uint64_t seed) {
  auto options = Options(mode, 5, 200, "lognormal:0.5");
  options.optimizer.options = SgdOptions{0.1, 0.9};
  options.seed = seed;
  Valley valley(0.01F);
  return Train(options, valley).parameters;
}

TEST(VirtualTrainingTest, RepeatsToTheBitInEveryMode) {
  for (const ShardOptions& mode :
       {Sync(5), Backup(4, 5), Bounded(1, 8), Ssp(1, 5), Async(1), Async(2)}) {
    EXPECT_EQ(NoisyRun(mode, 1), NoisyRun(mode, 1)) << ConsistencyModeName(mode.consistency.mode);
  }
}

TEST(VirtualTrainingTest, AnotherSeedEndsWithOtherBits) {
  EXPECT_NE(NoisyRun(Async(1), 1), NoisyRun(Async(1), 2));
}

TEST(VirtualTrainingTest, AWorkerTakesItsLocalStepsBeforeItPushes) {
  Valley valley;
  auto options = Options(Sync(2), 2, 24);
  options.local_steps = 3;
  const TrainingReport report = Train(options, valley);
  EXPECT_EQ(valley.pushes(), (std::map<uint32_t, int>{{0, 4}, {1, 4}}));
  EXPECT_EQ(report.server.step, Step(4));
  EXPECT_EQ(report.time, 12);
}

TEST(VirtualTrainingTest, LocalStepsHaveTheRateOfTheirServersStep) {
  Valley valley;
  auto options = Options(Sync(2), 2, 24);
  options.local_steps = 3;
  options.shard.schedule.warmup_steps = 4;
  Train(options, valley);
  EXPECT_THAT(valley.rates(), ElementsAre(0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1));
}

TEST(VirtualTrainingTest, TellsOfEachEpoch) {
  Valley valley;
  std::vector<int64_t> epochs;
  std::vector<double> losses;
  const auto report =
      TrainInVirtualTime(Options(Sync(1), 1, 25), valley,
                         [&](const EpochReport& epoch, absl::Span<const float> parameters) {
                           EXPECT_EQ(parameters.size(), 1);
                           epochs.push_back(epoch.epoch);
                           losses.push_back(epoch.loss);
                         });
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(epochs, ElementsAre(1, 2));
  EXPECT_THAT(losses, ElementsAre(4.5, 14.5));
  EXPECT_EQ(report->loss, 19.5);  // batches 15 to 24
}

TEST(VirtualTrainingTest, EndsWhereAGradientIsNotFinite) {
  Valley valley;
  valley.BreakAt(5);
  const TrainingReport report = Train(Options(Async(1), 1, 20), valley);
  EXPECT_THAT(std::string(report.ended.message()), HasSubstr("w[0]"));
  EXPECT_EQ(report.server.step, Step(5));
}

}  // namespace
}  // namespace sluice::bench
