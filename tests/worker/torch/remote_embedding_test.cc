// Embeddings whose rows are on a server: what they pull and push, against torch's own embeddings,
// and with a server of their own.

#include "worker/torch/tables/remote_embedding.h"

#include <torch/torch.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kWidth = 3;

// Row i is (i, i + 0.5, -i).
class NumberedRows final : public RowPuller {
 public:
  class Pull final : public PendingRows {
   public:
    explicit Pull(std::vector<RowId> ids) : ids_(std::move(ids)) {}
    void Read(absl::Span<float> rows) override {
      ASSERT_EQ(rows.size(), ids_.size() * kWidth);
      for (size_t i = 0; i < ids_.size(); ++i) {
        const auto id = static_cast<float>(ids_[i]);
        const float row[] = {id, id + 0.5f, -id};
        std::copy(std::begin(row), std::end(row), rows.begin() + i * kWidth);
      }
    }

   private:
    const std::vector<RowId> ids_;
  };

  std::unique_ptr<PendingRows> Start(uint32_t /*table*/, const std::vector<RowId>& ids) override {
    asked.push_back(ids);
    return std::make_unique<Pull>(ids);
  }

  std::vector<std::vector<RowId>> asked;
};

RemoteEmbeddingOptions Options() {
  RemoteEmbeddingOptions options;
  options.width = kWidth;
  return options;
}

torch::Tensor Ids(const std::vector<int64_t>& ids) { return torch::tensor(ids, torch::kInt64); }

class RemoteEmbeddingTest : public ::testing::Test {
 protected:
  RemoteEmbeddingTest() {
    embedding_->Bind(0, source_);
    bag_sum_->Bind(0, source_);
    bag_mean_->Bind(0, source_);
  }

  // torch's embedding with the same rows.
  static torch::Tensor Weight() {
    torch::Tensor weight = torch::empty({20, int64_t{kWidth}});
    std::vector<RowId> all(20);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    NumberedRows::Pull(all).Read({weight.data_ptr<float>(), 20 * kWidth});
    return weight.requires_grad_();
  }

  std::shared_ptr<NumberedRows> source_ = std::make_shared<NumberedRows>();
  RemoteEmbedding embedding_{Options()};
  RemoteEmbeddingBag bag_sum_{Options(), RemoteEmbeddingBagImpl::Mode::kSum};
  RemoteEmbeddingBag bag_mean_{Options(), RemoteEmbeddingBagImpl::Mode::kMean};
};

TEST_F(RemoteEmbeddingTest, GivesTheRowsOfIdsOfAnyShapeAndAsksForEachOnce) {
  const torch::Tensor ids = Ids({7, 2, 7, 5}).view({2, 2});
  const torch::Tensor rows = embedding_->forward(ids);
  EXPECT_TRUE(torch::equal(rows, torch::embedding(Weight(), ids)));
  EXPECT_THAT(source_->asked, ElementsAre(ElementsAre(2, 5, 7)));
}

TEST_F(RemoteEmbeddingTest, AddsTheGradientsOfRepeatedIdsAndOfSeveralCalls) {
  const torch::Tensor weight = Weight();
  for (const auto& ids : {Ids({7, 2, 7}), Ids({9, 2})}) {
    const torch::Tensor factor = torch::arange(1, ids.numel() * kWidth + 1).view({-1, kWidth});
    (embedding_->forward(ids) * factor).sum().backward();
    (torch::embedding(weight, ids) * factor).sum().backward();
  }
  const RowTensor taken = embedding_->TakeGradient();
  EXPECT_THAT(taken.ids, ElementsAre(2, 7, 9));
  EXPECT_TRUE(torch::equal(taken.rows, weight.grad().index_select(0, Ids({2, 7, 9}))));
  EXPECT_TRUE(embedding_->TakeGradient().ids.empty());
}

TEST_F(RemoteEmbeddingTest, ZeroGradBetweenForwardAndBackwardLosesNoGradient) {
  embedding_->forward(Ids({4})).sum().backward();
  const torch::Tensor loss = embedding_->forward(Ids({7})).sum();
  embedding_->ForgetGradients();
  loss.backward();
  EXPECT_THAT(embedding_->TakeGradient().ids, ElementsAre(7));
}

TEST(EmbeddingsOfTest, HasATiedEmbeddingOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      const RemoteEmbedding shared(Options());
      register_module("b", shared);
      register_module("a", shared);
    }
  };
  const Tied model;
  const std::vector<NamedEmbedding> embeddings = EmbeddingsOf(model);
  ASSERT_EQ(embeddings.size(), 1u);
  EXPECT_EQ(embeddings[0].name, "a");
}

TEST_F(RemoteEmbeddingTest, BagsAreThoseOfTorch) {
  const torch::Tensor ids = Ids({7, 2, 7, 5, 1});
  const torch::Tensor offsets = Ids({0, 3});
  const torch::Tensor weight = Weight();
  const auto sum = std::get<0>(torch::embedding_bag(weight, ids, offsets, false, 0));
  EXPECT_TRUE(torch::allclose(bag_sum_->forward(ids, offsets), sum));
  const auto mean = std::get<0>(torch::embedding_bag(weight, ids, offsets, false, 1));
  const torch::Tensor found = bag_mean_->forward(ids, offsets);
  EXPECT_TRUE(torch::allclose(found, mean));
  found.pow(2).sum().backward();
  mean.pow(2).sum().backward();
  const RowTensor taken = bag_mean_->TakeGradient();
  EXPECT_THAT(taken.ids, ElementsAre(1, 2, 5, 7));
  EXPECT_TRUE(torch::allclose(taken.rows, weight.grad().index_select(0, Ids({1, 2, 5, 7}))));
}

TEST_F(RemoteEmbeddingTest, RecordsNothingWithoutGradientsOrInEvaluation) {
  {
    const torch::NoGradGuard no_gradients;
    EXPECT_FALSE(embedding_->forward(Ids({1})).requires_grad());
  }
  embedding_->eval();
  EXPECT_FALSE(embedding_->forward(Ids({1})).requires_grad());
  EXPECT_TRUE(embedding_->TakeGradient().ids.empty());
}

TEST_F(RemoteEmbeddingTest, UsesWhatWasPrefetchedForTheSameIdsOnly) {
  embedding_->prefetch(Ids({4, 3}));
  embedding_->forward(Ids({3, 4, 4}));
  EXPECT_THAT(source_->asked, ElementsAre(ElementsAre(3, 4)));
  embedding_->prefetch(Ids({4, 3}));
  embedding_->forward(Ids({5}));
  embedding_->forward(Ids({3, 4}));
  EXPECT_EQ(source_->asked.size(), 4u);
}

TEST_F(RemoteEmbeddingTest, RefusesIdsThatAreNone) {
  EXPECT_THAT(
      [&] {
        embedding_->forward(Ids({3, -2}));
      },
      testing::ThrowsMessage<std::invalid_argument>(HasSubstr("row -2")));
  EXPECT_THAT([&] { embedding_->forward(torch::tensor({1.5})); },
              testing::ThrowsMessage<std::invalid_argument>(HasSubstr("expected int64")));
  RemoteEmbedding unbound(Options());
  EXPECT_THAT([&] { unbound->forward(Ids({3})); },
              testing::ThrowsMessage<std::logic_error>(HasSubstr("make the optimizer first")));
}

// ---- With a server ----

struct Model : torch::nn::Module {
  explicit Model(RowInitializer initializer) {
    RemoteEmbeddingOptions options = Options();
    options.initializer = initializer;
    items = register_module("items", RemoteEmbedding(options));
    bias = register_parameter("bias", torch::zeros({1}));
  }
  RemoteEmbedding items = nullptr;
  torch::Tensor bias;
};

TEST(RemoteEmbeddingOnAServerTest, TrainsItsRowsAsTheServersOptimizerDoes) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(0.5));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const torch::Tensor rows = model.items->forward(Ids({8, 3, 8}));
    ((rows * torch::tensor({1.0f, 2.0f, 4.0f})).sum() + model.bias.sum()).backward();
    optimizer.step();
  }
  model.eval();
  const torch::Tensor expected =
      torch::tensor({{-1.0f, -2.0f, -4.0f}, {0.0f, 0.0f, 0.0f}, {-2.0f, -4.0f, -8.0f}});
  EXPECT_TRUE(torch::equal(model.items->forward(Ids({3, 5, 8})), expected));
  EXPECT_EQ(model.bias.item<float>(), -1);
  optimizer.leave();
}

TEST(RemoteEmbeddingOnAServerTest, PullsAgainWhatWasPrefetchedBeforeTheStep) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(1));
  (model.items->forward(Ids({3})).sum() + model.bias.sum()).backward();
  model.items->prefetch(Ids({3}));
  optimizer.step();
  EXPECT_TRUE(torch::equal(model.items->forward(Ids({3})), -torch::ones({1, int64_t{kWidth}})));
  optimizer.leave();
}

TEST(RemoteEmbeddingOnAServerTest, RefusesLocalSteps) {
  JobWorld world(Sync(1));
  Model model({});
  EXPECT_THAT(
      [&] {
        RemoteOptimizer(world.JobOf("a"), model, torch::optim::SGDOptions(0.5), LocalSteps{2});
      },
      testing::ThrowsMessage<std::invalid_argument>(HasSubstr("train without local steps")));
}

}  // namespace
}  // namespace sluice
