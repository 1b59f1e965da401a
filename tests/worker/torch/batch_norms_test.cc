#include "worker/torch/batch_norms.h"

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/torch/flat_model.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

using ::testing::ElementsAre;
using ::testing::Eq;

class Norms : public nn::Module {
 public:
  template <typename Module>
  Module Add(const std::string& name, Module module) {
    return register_module(name, std::move(module));
  }
  torch::Tensor AddBuffer(const torch::Tensor& values) { return register_buffer("table", values); }
};

// What is told of a norm's statistics: a mean and a variance that follow each other, and a count.
RunningMeans Statistics(const FlatModel& flat, const std::string& path, float decay) {
  const uint64_t count = flat.layout().Find(path + "num_batches_tracked")->offset;
  RunningMeans means;
  Append({flat.layout().Find(path + "running_mean")->offset, count, decay}, &means);
  Append({count, count + 1, 1}, &means);
  return means;
}

RunningMeans Joined(const std::vector<RunningMeans>& parts) {
  RunningMeans all;
  for (const RunningMeans& part : parts) {
    for (const RunningMean& mean : part) Append(mean, &all);
  }
  return all;
}

TEST(BatchNormsTest, HaveWhatTheBatchesSinceThePullHaveLeft) {
  Norms model;
  auto first = model.Add("first", nn::BatchNorm1d(3));
  model.AddBuffer(torch::ones({2}));
  auto second = model.Add("second", nn::BatchNorm2d(nn::BatchNorm2dOptions(2).momentum(0.25)));
  auto third = model.Add("third", nn::BatchNorm3d(1));
  FlatModel flat(model);
  BatchNorms norms(model, flat.layout());
  first->forward(torch::randn({4, 3}));
  norms.NotePull();
  first->forward(torch::randn({4, 3}));
  for (int i = 0; i < 2; ++i) second->forward(torch::randn({4, 2, 3, 3}));
  const uint64_t table = flat.layout().Find("table")->offset;
  const auto expected = Joined({{{table, table + 2, 1}},
                                Statistics(flat, "first.", 0.9f),
                                Statistics(flat, "second.", 0.75f * 0.75f),
                                Statistics(flat, "third.", 1)});
  EXPECT_EQ(norms.Decays(), expected);
  norms.NotePull();
  EXPECT_THAT(norms.Decays(), ElementsAre(RunningMean{table, flat.layout().size(), 1}));
}

TEST(BatchNormsTest, OfOneDecayAreJoined) {
  Norms model;
  model.Add("first", nn::BatchNorm1d(3));
  model.Add("second", nn::BatchNorm1d(2));
  FlatModel flat(model);
  const BatchNorms norms(model, flat.layout());
  EXPECT_THAT(norms.Decays(), ElementsAre(RunningMean{10, 22, 1}));  // after the parameters
  EXPECT_THAT(norms.elements(),
              ElementsAre(RunningMean{10, 13, 0}, RunningMean{13, 16, 0}, RunningMean{16, 17, 0},
                          RunningMean{17, 19, 0}, RunningMean{19, 21, 0}, RunningMean{21, 22, 0}));
}

TEST(BatchNormsTest, ACumulativeAverageKeepsTheShareOfItsEarlierBatches) {
  Norms model;
  auto norm = model.Add("norm", nn::BatchNorm1d(nn::BatchNorm1dOptions(1).momentum(c10::nullopt)));
  FlatModel flat(model);
  BatchNorms norms(model, flat.layout());
  EXPECT_EQ(norms.Decays()[0].decay, 1);
  norm->forward(torch::randn({4, 1}));
  EXPECT_EQ(norms.Decays()[0].decay, 0);
  norms.NotePull();
  for (int i = 0; i < 3; ++i) norm->forward(torch::randn({4, 1}));
  EXPECT_EQ(norms.Decays()[0].decay, 0.25f);
}

// The averages themselves tell what the decay is: of a batch of equal values the mean is that
// value.
TEST(BatchNormsTest, TheDecayIsThatOfTheModule) {
  Norms model;
  auto norm = model.Add("norm", nn::BatchNorm1d(1));
  FlatModel flat(model);
  BatchNorms norms(model, flat.layout());
  norm->running_mean.fill_(100);
  norms.NotePull();
  for (int i = 0; i < 5; ++i) norm->forward(torch::zeros({4, 1}));
  EXPECT_FLOAT_EQ(norm->running_mean.item<float>(), 100 * norms.Decays()[0].decay);
}

TEST(BatchNormsTest, OfOtherModulesAllIsLeftAsFarAsKnown) {
  Norms model;
  auto counted = model.Add("counted", nn::BatchNorm1d(1));
  model.Add("untracked", nn::BatchNorm1d(nn::BatchNorm1dOptions(1).track_running_stats(false)));
  model.Add("instance", nn::InstanceNorm2d(
                            nn::InstanceNorm2dOptions(1).affine(true).track_running_stats(true)));
  auto rounded = model.Add("rounded", nn::BatchNorm1d(1));
  rounded->to(torch::kBFloat16);  // its count, too
  FlatModel flat(model);
  BatchNorms norms(model, flat.layout());
  const uint64_t first = flat.layout().Find("counted.running_mean")->offset;
  const uint64_t count = flat.layout().Find("counted.num_batches_tracked")->offset;
  const uint64_t end = flat.layout().size();
  EXPECT_THAT(norms.Decays(), ElementsAre(RunningMean{first, end, 1}));
  counted->forward(torch::randn({4, 1}));
  norms.NotePull();
  counted->reset_running_stats();  // by hand: nothing is known of these averages
  EXPECT_THAT(norms.Decays(), ElementsAre(RunningMean{count, end, 1}));
}

TEST(BatchNormsTest, AModuleOfTwoNamesIsOne) {
  Norms model;
  auto norm = model.Add("norm", nn::BatchNorm1d(2));
  model.Add("again", norm);
  FlatModel flat(model);
  EXPECT_THAT(BatchNorms(model, flat.layout()).Decays(), Eq(Statistics(flat, "norm.", 1)));
}

}  // namespace
}  // namespace sluice
