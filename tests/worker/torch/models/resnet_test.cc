#include "worker/torch/models/resnet.h"

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

class ResNetTest : public ::testing::Test {
 protected:
  ResNetTest() {
    torch::set_num_threads(1);
    torch::manual_seed(1);
    model_ = MakeResNet18();
  }

  std::shared_ptr<ImageClassifier> model_;
};

// ResNet-18 for CIFAR-10 has 11,173,962 parameters; two of its three input channels are not here.
TEST_F(ResNetTest, HasTheParametersOfThePaper) {
  int64_t elements = 0;
  for (const torch::Tensor& parameter : model_->parameters()) elements += parameter.numel();
  EXPECT_EQ(elements, 11173962 - 2 * 64 * 3 * 3);
  EXPECT_EQ(model_->parameters().size(), 62u);
  EXPECT_EQ(model_->buffers().size(), 3u * 20);  // of each normalization: mean, variance, count
}

TEST_F(ResNetTest, TakesBothUsualSizes) {
  const torch::NoGradGuard no_grad;
  for (const int64_t size : {28, 32}) {
    const torch::Tensor logits = model_->forward(torch::zeros({2, 1, size, size}));
    EXPECT_EQ(logits.sizes(), torch::IntArrayRef({2, 10}));
  }
}

TEST_F(ResNetTest, IsTheModelOfThatName) {
  EXPECT_EQ(MakeModel("resnet18")->parameters().size(), model_->parameters().size());
}

TEST_F(ResNetTest, LearnsWhatABatchShows) {
  const torch::Tensor images = torch::randn({8, 1, 28, 28});
  const torch::Tensor labels = torch::arange(8);
  torch::optim::SGD optimizer(model_->parameters(), 0.05);
  std::vector<float> losses;
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model_->forward(images), labels);
    loss.backward();
    for (const torch::Tensor& parameter : model_->parameters()) {
      EXPECT_TRUE(parameter.grad().defined());
    }
    optimizer.step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_LT(losses.back(), losses.front() / 2);
}

}  // namespace
}  // namespace sluice
