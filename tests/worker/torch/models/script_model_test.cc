#include "worker/torch/models/script_model.h"

#include <torch/script.h>
#include <torch/torch.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "worker/torch/batch_norms.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Writes a model to a file, and returns the sum of its logits of an image of ones.
double Write(const std::string& path, const std::string& how, int classes = 10) {
  const std::string output =
      OutputOf({"/usr/bin/python3", RunfilePath("tests/worker/torch/models/save_script.py"), path,
                how, absl::StrCat(classes)},
               0);
  return std::stod(output);
}

std::string ErrorOf(const std::string& path, const SampleForm& form = {}) {
  try {
    LoadScriptModel(path, form);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

class ScriptModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string path_ = absl::StrCat(::testing::TempDir(), GetParam(), ".pt");
};

TEST_P(ScriptModelTest, IsTheModelThatPythonSaved) {
  const double expected = Write(path_, GetParam());
  const auto model = MakeModel(path_);
  model->eval();
  const torch::NoGradGuard no_grad;
  EXPECT_NEAR(model->forward(torch::ones({1, 1, 28, 28})).sum().item<double>(), expected, 1e-5);
}

// A trace does not normalize by the batch.
TEST_P(ScriptModelTest, TakesBatchesOfOneSampleOnlyIfItDoesNotNormalizeThem) {
  Write(path_, GetParam());
  if (std::string(GetParam()) == "script") {
    EXPECT_THROW(CheckTrainsOnOneSample(path_), std::invalid_argument);
  } else {
    EXPECT_NO_THROW(CheckTrainsOnOneSample(path_));
  }
}

TEST_P(ScriptModelTest, HasTheNamesOfPythonsStateDict) {
  Write(path_, GetParam());
  const auto model = LoadScriptModel(path_, SampleForm());
  std::vector<std::string> names;
  for (const auto& parameter : model->named_parameters()) names.push_back(parameter.key());
  for (const auto& buffer : model->named_buffers()) names.push_back(buffer.key());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "scale", "body.1.weight", "body.1.bias", "body.2.weight", "body.2.bias",
                         "head.weight", "head.bias", "body.2.running_mean", "body.2.running_var",
                         "body.2.num_batches_tracked"));
}

TEST_P(ScriptModelTest, TellsHowMuchItsBatchNormKeeps) {
  Write(path_, GetParam());
  const auto model = LoadScriptModel(path_, SampleForm());
  FlatModel flat(*model);
  BatchNorms norms(*model, flat.layout());
  const torch::Tensor mean = model->named_buffers()["body.2.running_mean"];
  const torch::Tensor count = model->named_buffers()["body.2.num_batches_tracked"];
  model->train();
  mean.fill_(1e6);
  for (int i = 0; i < 3; ++i) model->forward(torch::ones({2, 1, 28, 28}));
  if (count.item<int64_t>() == 0) {  // a trace does not train it: all is left
    ASSERT_EQ(norms.Decays().size(), 1u);
    EXPECT_EQ(norms.Decays()[0].decay, 1);
    return;
  }
  ASSERT_EQ(norms.Decays().size(), 2u);  // the averages, and the count
  const float decay = norms.Decays()[0].decay;
  EXPECT_EQ(decay, 0.729f);
  EXPECT_NEAR(mean[0].item<float>() / 1e6, decay, 1e-4);
}

// The tensors of the script itself are views of the flat vector.
TEST_P(ScriptModelTest, LearnsThroughAFlatModel) {
  Write(path_, GetParam());
  const auto model = LoadScriptModel(path_, SampleForm());
  FlatModel flat(*model);
  torch::manual_seed(1);
  const torch::Tensor images = torch::randn({8, 1, 28, 28});
  const torch::Tensor labels = torch::arange(8);
  std::vector<float> losses;
  model->train();
  for (int step = 0; step < 30; ++step) {
    flat.ZeroGradients();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
    loss.backward();
    losses.push_back(loss.item<float>());
    const absl::Span<const float> gradients = flat.GatherGradients().values;
    for (const LayoutRange& range : flat.layout().ranges()) {
      if (range.kind != RangeKind::kParameter) continue;
      for (uint64_t i = range.offset; i < range.offset + range.length; ++i) {
        flat.values()[i] -= 0.1F * gradients[i];
      }
    }
    flat.ScatterValues();
  }
  EXPECT_LT(losses.back(), losses.front() / 2);
}

TEST(ScriptModelBuffersTest, ABufferThatTheScriptAssignsToIsThatOfTheModel) {
  const std::string path = TestPath("ema.pt");
  torch::jit::Module script("m");
  script.register_parameter("w", torch::ones({784, 10}).requires_grad_(), /*is_buffer=*/false);
  script.register_buffer("ema", torch::zeros({1}));
  script.register_attribute("training", c10::BoolType::get(), true);
  script.define(R"(
    def forward(self, x):
        y = x.flatten(1)
        if self.training:
            self.ema = 0.5 * self.ema + 0.5 * y.mean().reshape(1)
        return y @ self.w
  )");
  script.save(path);
  const auto model = LoadScriptModel(path, SampleForm());
  FlatModel flat(*model);
  model->train();
  for (int i = 0; i < 2; ++i) model->forward(torch::full({2, 1, 28, 28}, 4.0));
  flat.CheckTensors();
  const LayoutRange& ema = *flat.layout().Find("ema");
  EXPECT_EQ(flat.GatherGradients().values[ema.offset], 3);
  flat.values()[ema.offset] = 8;
  flat.ScatterValues();
  model->forward(torch::zeros({2, 1, 28, 28}));
  EXPECT_EQ(flat.GatherValues()[ema.offset], 4);
}

INSTANTIATE_TEST_SUITE_P(, ScriptModelTest, ::testing::Values("script", "trace"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ScriptModelErrorsTest, SaysWhatIsWrongWithTheFile) {
  const std::string path = TestPath("other.pt");
  EXPECT_THAT(ErrorOf(path), HasSubstr(path + ": expected a file of torch.jit.save()"));
  std::ofstream(path) << "no program";
  EXPECT_THAT(ErrorOf(path), HasSubstr(path + ": expected a file of torch.jit.save()"));
}

TEST(ScriptModelErrorsTest, RefusesAModelThatWouldChangeWhileItIsEvaluated) {
  const std::string path = TestPath("model.pt");
  Write(path, "trace-training");
  EXPECT_THAT(ErrorOf(path), HasSubstr("evaluation changes a buffer"));
}

TEST(ScriptModelErrorsTest, RefusesAModelThatCannotLearn) {
  const std::string path = TestPath("model.pt");
  Write(path, "freeze");
  EXPECT_EQ(ErrorOf(path), path + ": no parameter requires a gradient, expected some");
}

TEST(ScriptModelErrorsTest, SaysThatTheModelDoesNotFitTheData) {
  const std::string path = TestPath("model.pt");
  Write(path, "script", 7);
  EXPECT_EQ(ErrorOf(path), path +
                               ": forward() of 2 samples returns a tensor of [2, 7], expected "
                               "[2, 10]: one number for each class of the data");
  EXPECT_THAT(ErrorOf(path, {3, 32, 32, 7}), HasSubstr(path + ": "));
}

}  // namespace
}  // namespace sluice
