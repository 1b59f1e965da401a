// The models beside those of torchvision, which are an independent writing of the same papers.

#include "worker/torch/models/models.h"

#include <torch/torch.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

int64_t ParametersOf(const std::string& name, const SampleForm& form) {
  int64_t elements = 0;
  for (const torch::Tensor& parameter : MakeModel(name, form)->parameters()) {
    elements += parameter.numel();
  }
  return elements;
}

std::string ErrorOf(const std::string& name, const SampleForm& form) {
  try {
    MakeModel(name, form);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

// ---- Batches of one sample ----

TEST(OneSampleTest, IsEnoughWhereEachChannelHasSeveralValues) {
  for (const char* const name : {"logistic", "lenet", "resnet18", "vgg11", "vgg11-bn"}) {
    EXPECT_NO_THROW(CheckTrainsOnOneSample(name)) << name;
  }
}

TEST(OneSampleTest, IsTooFewToNormalizeItsFeatures) {
  try {
    CheckTrainsOnOneSample("mlp");
    FAIL() << "expected std::invalid_argument";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "the model mlp cannot be trained on batches of one sample, for example because its "
        "batch normalization needs several; give a larger --batch-size");
  }
}

// ---- Sizes ----

struct Size {
  const char* name;
  int64_t parameters;
};

// For 3 x 224 x 224 and 1,000 classes, as the papers count: table 2 of Simonyan and Zisserman
// rounds to 133, 133, 138 and 144 million.
constexpr Size kVggSizes[] = {
    {"vgg11", 132863336},    {"vgg13", 133047848},    {"vgg16", 138357544},
    {"vgg19", 143667240},    {"vgg11-bn", 132868840}, {"vgg13-bn", 133053736},
    {"vgg16-bn", 138365992}, {"vgg19-bn", 143678248},
};

TEST(ModelSizeTest, IsThatOfThePapersForImageNet) {
  const SampleForm imagenet = {3, 224, 224, 1000};
  for (const Size& size :
       {Size{"resnet18", 11689512}, Size{"resnet34", 21797672}, Size{"resnet50", 25557032},
        Size{"resnet101", 44549160}, Size{"resnet152", 60192808}, kVggSizes[0]}) {
    EXPECT_EQ(ParametersOf(size.name, imagenet), size.parameters) << size.name;
  }
}

// Where one linear layer takes the place of the paper's three.
TEST(ModelSizeTest, OfVggDiffersForSmallImagesByTheLinearLayersAlone) {
  constexpr int64_t kThree = 25088 * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * 1000 + 1000;
  constexpr int64_t kOne = 512 * 1000 + 1000;
  for (const Size& size : kVggSizes) {
    EXPECT_EQ(ParametersOf(size.name, {3, 32, 32, 1000}), size.parameters - kThree + kOne)
        << size.name;
  }
}

TEST(ModelSizeTest, IsTheUsualOneForSmallImages) {
  const SampleForm cifar = {3, 32, 32, 10};
  for (const Size& size :
       {Size{"resnet18", 11173962}, Size{"resnet34", 21282122}, Size{"resnet50", 23520842},
        Size{"resnet101", 42512970}, Size{"resnet152", 58156618}, Size{"vgg11", 9225610},
        Size{"vgg13", 9410122}, Size{"vgg16", 14719818}, Size{"vgg19", 20029514},
        Size{"vgg19-bn", 20029514 + 11008}, Size{"logistic", 30730}, Size{"mlp", 789770},
        Size{"lenet", 62006}}) {
    EXPECT_EQ(ParametersOf(size.name, cifar), size.parameters) << size.name;
  }
  EXPECT_EQ(ParametersOf("resnet18", SampleForm()), 11173962 - 2 * 64 * 3 * 3);
  EXPECT_EQ(ParametersOf("lenet", SampleForm()), 61706);
  EXPECT_EQ(ParametersOf("lenet", {1, 32, 32, 10}), 61706);
  EXPECT_EQ(ParametersOf("logistic", SampleForm()), 7850);
  EXPECT_EQ(ParametersOf("logistic", {1, 1, 123, 2}), 248);
  EXPECT_EQ(ParametersOf("mlp", SampleForm()), 784 * 256 + 256 + 2 * 256 + 2570);
}

// ---- Forward passes ----

// Numbers from -0.5 on and below 0.5, which repeat. This and Fill() are those of
// torchvision_outputs.py.
torch::Tensor Uniform(int64_t count, int64_t salt) {
  constexpr int64_t kPeriod = 1000003;  // a prime, so that no two rows of a layer are the same
  const torch::Tensor whole = torch::arange(std::min(count, kPeriod))
                                  .mul(2654435761)
                                  .add(salt)
                                  .bitwise_and(int64_t{0xFFFFFFFF});
  const torch::Tensor numbers = whole.to(torch::kFloat64) / 4294967296.0 - 0.5;
  return numbers.repeat({(count + kPeriod - 1) / kPeriod}).slice(0, 0, count);
}

void Fill(const std::string& name, const torch::Tensor& tensor) {
  const auto salt =
      static_cast<int64_t>(crc32_z(0, reinterpret_cast<const Bytef*>(name.data()), name.size()));
  torch::Tensor numbers = Uniform(tensor.numel(), salt).reshape(tensor.sizes());
  if (tensor.dim() > 1) {
    const int64_t fan_in = tensor.numel() / tensor.size(0);
    numbers = numbers * std::sqrt(24.0 / static_cast<double>(fan_in));
  } else if (absl::EndsWith(name, "running_var")) {
    numbers = numbers + 1;
  } else if (absl::EndsWith(name, "weight")) {
    numbers = numbers * 0.2 + 1;
  } else {
    numbers = numbers * 0.2;
  }
  tensor.copy_(numbers);
}

// Of two images of 3 x side x side.
torch::Tensor LogitsOf(const std::string& name, int64_t side) {
  const torch::NoGradGuard no_grad;
  const auto model = MakeModel(name, {3, side, side, 10});
  for (const auto& parameter : model->named_parameters()) Fill(parameter.key(), *parameter);
  for (const auto& buffer : model->named_buffers()) {
    if (buffer.value().dtype() == torch::kFloat32) Fill(buffer.key(), buffer.value());
  }
  model->eval();
  const torch::Tensor images = Uniform(2 * 3 * side * side, 1).reshape({2, 3, side, side});
  return model->forward(images.to(torch::kFloat32) * 4).flatten().to(torch::kFloat64);
}

TEST(TorchvisionTest, HasTheSameNamesAndTheSameForwardPass) {
  torch::set_num_threads(1);
  const std::string output = OutputOf(
      {"/usr/bin/python3", RunfilePath("tests/worker/torch/models/torchvision_outputs.py")}, 0);
  int compared = 0;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const std::vector<std::string> model = absl::StrSplit(words[0], '/');
    int64_t side = 0;
    ASSERT_TRUE(model.size() == 2 && absl::SimpleAtoi(model[1], &side)) << line;
    const torch::Tensor logits = LogitsOf(model[0], side);
    ASSERT_EQ(words.size(), 21u) << line;
    const double scale = logits.abs().max().item<double>();
    for (int64_t i = 0; i < 20; ++i) {
      double expected = 0;
      ASSERT_TRUE(absl::SimpleAtod(words[i + 1], &expected)) << line;
      EXPECT_NEAR(logits[i].item<double>(), expected, 1e-4 * scale) << words[0] << ", logit " << i;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 11) << output;
}

// ---- First parameters ----

// He et al. 2015: for the convolutions, a normal distribution of variance 2 / (outputs · kernel).
TEST(FirstParametersTest, AreThoseOfThePapers) {
  torch::manual_seed(1);
  for (const char* const name : {"resnet18", "resnet50", "vgg11", "vgg16-bn"}) {
    const auto model = MakeModel(name, {3, 64, 64, 10});
    for (const auto& parameter : model->named_parameters()) {
      if (parameter->dim() != 4) continue;
      const auto fan_out = static_cast<double>(parameter->numel() / parameter->size(1));
      EXPECT_NEAR(parameter->std().item<double>() / std::sqrt(2 / fan_out), 1, 0.05)
          << name << " " << parameter.key();
    }
  }
}

TEST(FirstParametersTest, OfVggsLinearLayersAreSmall) {
  torch::manual_seed(1);
  const auto parameters = MakeModel("vgg11", {3, 64, 64, 10})->named_parameters();
  EXPECT_NEAR(parameters["classifier.3.weight"].std().item<double>(), 0.01, 0.0001);
  EXPECT_EQ(parameters["classifier.3.bias"].abs().max().item<double>(), 0);
  EXPECT_EQ(parameters["features.0.bias"].abs().max().item<double>(), 0);
}

// ---- Learning ----

class ModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelTest, LearnsWhatABatchShows) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const auto model = MakeModel(GetParam());
  const torch::Tensor images = torch::randn({8, 1, 28, 28});
  const torch::Tensor labels = torch::arange(8);
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  std::vector<float> losses;
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
    loss.backward();
    for (const torch::Tensor& parameter : model->parameters()) {
      EXPECT_TRUE(parameter.grad().defined());
    }
    optimizer.step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_LT(losses.back(), losses.front() / 2);
}

INSTANTIATE_TEST_SUITE_P(, ModelTest, ::testing::Values("logistic", "mlp", "resnet18", "vgg11-bn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

// ---- Bad input ----

TEST(MakeModelTest, NamesTheFormsThatAModelTakes) {
  EXPECT_EQ(
      ErrorOf("lenet", {3, 64, 64, 10}),
      "lenet takes images of 28 x 28 or 32 x 32, found samples of 64 x 64; logistic and mlp take "
      "samples of any form");
  for (const char* const name : {"resnet50", "vgg16"}) {
    EXPECT_EQ(ErrorOf(name, {1, 1, 123, 2}),
              absl::StrCat(name,
                           " takes images of at least 16 x 16, found samples of 1 x 123; "
                           "logistic and mlp take samples of any form"));
  }
}

TEST(MakeModelTest, MakesEveryModelThatItLists) {
  EXPECT_EQ(ModelNames().size(), 16u);
  for (const std::string& name : ModelNames()) {
    EXPECT_EQ(ErrorOf(name, {3, 32, 32, 100}), "none") << name;
  }
  EXPECT_THAT(ErrorOf("resnet20", SampleForm()),
              HasSubstr("no model \"resnet20\"; known models are logistic, mlp, lenet, resnet18"));
}

}  // namespace
}  // namespace sluice
