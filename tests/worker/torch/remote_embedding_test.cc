// Embeddings whose rows are on a server: what they pull and push, against torch's own embeddings,
// and with a server of their own.

#include "worker/torch/tables/remote_embedding.h"

#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
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
  const RowTensor taken = embedding_->Gradient();
  EXPECT_THAT(taken.ids, ElementsAre(2, 7, 9));
  EXPECT_TRUE(torch::equal(taken.rows, weight.grad().index_select(0, Ids({2, 7, 9}))));
  embedding_->ForgetGradients();
  EXPECT_TRUE(embedding_->Gradient().ids.empty());
}

TEST_F(RemoteEmbeddingTest, ItsRowsDoNotDependOnTheDefaultTypeOfTorch) {
  const torch::Tensor ids = torch::tensor({3, 1, 3}, torch::kInt64);
  const torch::Tensor expected = embedding_->forward(ids).detach();
  for (const torch::ScalarType type : {torch::kFloat64, torch::kFloat16}) {
    torch::set_default_dtype(c10::scalarTypeToTypeMeta(type));
    const torch::Tensor rows = embedding_->forward(ids);
    EXPECT_TRUE(embedding_->Gradient().rows.scalar_type() == torch::kFloat32);
    rows.sum().backward();
    embedding_->forward(ids).sum().backward();
    const RowTensor gradient = embedding_->Gradient();
    embedding_->ForgetGradients();
    torch::set_default_dtype(c10::scalarTypeToTypeMeta(torch::kFloat32));
    EXPECT_TRUE(rows.equal(expected));
    EXPECT_EQ(gradient.rows[1][0].item<float>(), 4);  // row 3: twice in two forwards
  }
}

TEST_F(RemoteEmbeddingTest, ZeroGradBetweenForwardAndBackwardLosesNoGradient) {
  embedding_->forward(Ids({4})).sum().backward();
  const torch::Tensor loss = embedding_->forward(Ids({7})).sum();
  embedding_->ForgetGradients();
  loss.backward();
  EXPECT_THAT(embedding_->Gradient().ids, ElementsAre(7));
}

// A forward for the next batch may come before the step and the zero_grad() of this one.
TEST_F(RemoteEmbeddingTest, KeepsWhatAGraphCanStillReachAndNothingElse) {
  torch::Tensor early = embedding_->forward(Ids({7}));
  embedding_->forward(Ids({4})).sum().backward();
  for (int i = 0; i < 3; ++i) embedding_->ForgetGradients();
  early.sum().backward();
  EXPECT_THAT(embedding_->Gradient().ids, ElementsAre(7));
  embedding_->ForgetGradients();
  EXPECT_TRUE(embedding_->Gradient().ids.empty());
}

TEST_F(RemoteEmbeddingTest, AGraphThatRunsBackwardTwiceHasItsGradientInBothSteps) {
  const torch::Tensor loss = embedding_->forward(Ids({7})).sum();
  loss.backward({}, /*retain_graph=*/true);
  embedding_->ForgetGradients();
  loss.backward();
  const RowTensor second = embedding_->Gradient();
  EXPECT_THAT(second.ids, ElementsAre(7));
  EXPECT_TRUE(torch::equal(second.rows, torch::ones({1, int64_t{kWidth}})));
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
  const RowTensor taken = bag_mean_->Gradient();
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
  EXPECT_TRUE(embedding_->Gradient().ids.empty());
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

// ---- Ids in odd forms ----

// Expects that act() throws std::invalid_argument with these words.
template <typename Act>
void ExpectRefused(const Act& act, const std::string& words) {
  EXPECT_THAT(act, testing::ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
}

TEST_F(RemoteEmbeddingTest, ForwardAndPrefetchRefuseIdsThatAreNone) {
  for (const bool prefetch : {false, true}) {
    const auto use = [&](const torch::Tensor& ids) {
      return [this, prefetch, ids] {
        if (prefetch) {
          embedding_->prefetch(ids);
        } else {
          embedding_->forward(ids);
        }
      };
    };
    ExpectRefused(use(Ids({3, -2})), "got the id -2, expected ids from 0 on; give each item a");
    ExpectRefused(use(torch::tensor({1.5})), "are Float, expected int64 or int32; convert them");
    ExpectRefused(use(torch::tensor({true})), "are Bool, expected int64 or int32");
    ExpectRefused(use(torch::Tensor()), "are an undefined tensor");
  }
  EXPECT_TRUE(source_->asked.empty());
  RemoteEmbedding unbound(Options());
  EXPECT_THAT([&] { unbound->forward(Ids({3})); },
              testing::ThrowsMessage<std::logic_error>(HasSubstr("make the optimizer first")));
}

TEST_F(RemoteEmbeddingTest, IdsMayBeOf32BitsOrLieApart) {
  const torch::Tensor ids = Ids({7, 2, 5, 1}).view({2, 2}).t();
  ASSERT_FALSE(ids.is_contiguous());
  const torch::Tensor expected = torch::embedding(Weight(), ids);
  EXPECT_TRUE(torch::equal(embedding_->forward(ids), expected));
  EXPECT_TRUE(torch::equal(embedding_->forward(ids.to(torch::kInt32)), expected));
  EXPECT_TRUE(torch::equal(embedding_->forward(torch::tensor(7)), Weight()[7]));
}

TEST_F(RemoteEmbeddingTest, AnEmptyBatchHasNoRowsAndAGraph) {
  const torch::Tensor rows = embedding_->forward(torch::empty({2, 0}, torch::kInt64));
  EXPECT_EQ(rows.sizes(), torch::IntArrayRef({2, 0, int64_t{kWidth}}));
  rows.sum().backward();
  EXPECT_TRUE(embedding_->Gradient().ids.empty());
}

TEST_F(RemoteEmbeddingTest, EmptyBagsAreThoseOfTorch) {
  const std::vector<std::pair<torch::Tensor, torch::Tensor>> cases = {
      {Ids({7, 2, 7}), Ids({0, 0, 2, 3})}, {Ids({}), Ids({0, 0})}, {Ids({}), Ids({})}};
  for (const auto& [ids, offsets] : cases) {
    const auto expected = std::get<0>(torch::embedding_bag(Weight(), ids, offsets, false, 1));
    const torch::Tensor found = bag_mean_->forward(ids, offsets.to(torch::kInt32));
    EXPECT_TRUE(torch::equal(found, expected)) << offsets;
    found.sum().backward();
  }
}

TEST_F(RemoteEmbeddingTest, BagsRefuseOffsetsAndShapesThatTorchWouldMisread) {
  const auto bag = [this](const torch::Tensor& ids, const torch::Tensor& offsets) {
    return [this, ids, offsets] { bag_sum_->forward(ids, offsets); };
  };
  const torch::Tensor ids = Ids({7, 2, 5});
  ExpectRefused(bag(ids, Ids({0, 2, 1})),
                "the offset of bag 2 is 1, expected 2, where the bag before it begins, to 3");
  ExpectRefused(bag(ids, Ids({0, 4})), "the offset of bag 1 is 4");
  ExpectRefused(bag(ids, Ids({1})), "the offset of bag 0 is 1, expected 0, where the first");
  ExpectRefused(bag(ids, torch::tensor({0.0})), "offsets of an embedding bag are Float");
  ExpectRefused(bag(ids, torch::Tensor()), "offsets of an embedding bag are an undefined tensor");
  ExpectRefused(bag(ids, Ids({0}).view({1, 1})), "offsets of an embedding bag have 2 dimensions");
  ExpectRefused(bag(ids.view({1, 3}), Ids({0})), "ids of an embedding bag have 2 dimensions");
  ExpectRefused([&] { bag_sum_->prefetch(ids.view({1, 3})); }, "have 2 dimensions, expected 1");
  EXPECT_TRUE(source_->asked.empty());
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

struct OnlyTables : torch::nn::Module {
  OnlyTables() { items = register_module("items", RemoteEmbedding(ZeroRows())); }
  static RemoteEmbeddingOptions ZeroRows() {
    RemoteEmbeddingOptions options = Options();
    options.initializer = {};
    return options;
  }
  RemoteEmbedding items = nullptr;
};

TEST(RemoteEmbeddingOnAServerTest, TheModelNeedsNoOtherParameter) {
  for (const Overlap overlap : {Overlap::kOff, Overlap::kBackward}) {
    JobWorld world(Sync(1));
    OnlyTables model;
    RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(0.5), absl::nullopt,
                              overlap);
    for (uint64_t step = 1; step <= 2; ++step) {
      optimizer.zero_grad();
      model.items->forward(Ids({8, 3, 8})).sum().backward();
      EXPECT_EQ(optimizer.step().step, Step(step));
    }
    optimizer.await_end_of_training();
    const torch::Tensor expected =
        torch::tensor({-1.0F, -2.0F}).view({2, 1}).expand({2, int64_t{kWidth}});
    EXPECT_TRUE(torch::equal(model.items->forward(Ids({3, 8})), expected));
  }
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

// The server refuses NaN. The gradient of the row stays, as that of the bias does.
TEST(RemoteEmbeddingOnAServerTest, AStepThatIsRefusedLosesNoGradientAndOneThatIsNotKeepsNone) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(1));
  const torch::Tensor expected = -torch::ones({1, int64_t{kWidth}});
  (model.items->forward(Ids({3})).sum() + model.bias.sum()).backward();
  model.bias.mutable_grad().fill_(NAN);
  EXPECT_THROW(optimizer.step(), RemoteError);
  model.bias.mutable_grad().fill_(0);
  optimizer.step();
  EXPECT_TRUE(torch::equal(model.items->forward(Ids({3})), expected));
  optimizer.step();
  EXPECT_TRUE(torch::equal(model.items->forward(Ids({3})), expected));
  optimizer.leave();
}

TEST(RemoteEmbeddingOnAServerTest, ZeroGradDropsTheGradientOfARefusedStep) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(1));
  (NAN * model.items->forward(Ids({3})).sum() + model.bias.sum()).backward();
  EXPECT_THROW(optimizer.step(), RemoteError);
  optimizer.zero_grad();
  optimizer.step();
  EXPECT_TRUE(torch::equal(model.items->forward(Ids({3})), torch::zeros({1, int64_t{kWidth}})));
  optimizer.leave();
}

TEST(RemoteEmbeddingOnAServerTest, AnOptimizerThatReplacesAnotherGivesTheRows) {
  JobWorld world(Async(1));
  Model model({});
  const torch::optim::SGDOptions options(1);
  auto optimizer = std::make_unique<RemoteOptimizer>(world.JobOf("a"), model, options);
  model.items->prefetch(Ids({3}));
  optimizer = std::make_unique<RemoteOptimizer>(world.JobOf("b"), model, options);
  EXPECT_EQ(model.items->forward(Ids({3})).size(0), 1);
  model.items->prefetch(Ids({3}));
  optimizer = nullptr;
  EXPECT_THAT([&] { model.items->forward(Ids({3})); },
              testing::ThrowsMessage<std::logic_error>(HasSubstr("has no rows")));
}

TEST(RemoteEmbeddingOnAServerTest, RowsAreNotPulledAfterTheWorkerHasLeft) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(1));
  model.items->prefetch(Ids({3}));
  optimizer.leave();
  for (int i = 0; i < 2; ++i) {  // what was prefetched, and what was not
    EXPECT_THAT([&] { model.items->forward(Ids({3})); },
                testing::ThrowsMessage<RemoteError>(HasSubstr("pull them before it leaves")));
  }
}

// What was prefetched is of an earlier step.
TEST(RemoteEmbeddingOnAServerTest, RowsOfTheLastStepArePulledBetweenTheEndOfTrainingAndTheReport) {
  JobWorld world(Sync(1));
  Model model({});
  RemoteOptimizer optimizer(world.JobOf("a"), model, torch::optim::SGDOptions(1));
  model.items->prefetch(Ids({3}));
  (model.items->forward(Ids({3})).sum() + model.bias.sum()).backward();
  model.items->prefetch(Ids({3}));
  optimizer.step();
  optimizer.await_end_of_training();
  model.eval();
  const torch::Tensor expected = -torch::ones({1, int64_t{kWidth}});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(model.items->forward(Ids({3})), expected));
  optimizer.report({{"test loss", 0.5}});
  EXPECT_THAT([&] { model.items->forward(Ids({3})); },
              testing::ThrowsMessage<RemoteError>(HasSubstr("after report(), with which")));
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
