#include "worker/torch/flat_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<float>;

// A module to which a test adds what it is about.
class Parts : public nn::Module {
 public:
  torch::Tensor Parameter(const std::string& name, const torch::Tensor& values) {
    return register_parameter(name, values);
  }
  torch::Tensor Frozen(const std::string& name, const torch::Tensor& values) {
    return register_parameter(name, values, /*requires_grad=*/false);
  }
  torch::Tensor Buffer(const std::string& name, const torch::Tensor& values) {
    return register_buffer(name, values);
  }
  template <typename Module>
  Module Child(const std::string& name, Module module) {
    return register_module(name, std::move(module));
  }
};

torch::Tensor Tensor(const std::vector<float>& values) { return torch::tensor(values); }

// Any tensor's elements, in row-major order.
Values Elements(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kFloat32).contiguous();
  return Values(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
}

Values Elements(absl::Span<const float> span) { return Values(span.begin(), span.end()); }

// The part of `vector` that belongs to tensor `name`.
Values RangeOf(const FlatModel& model, const std::string& name, absl::Span<const float> vector) {
  const LayoutRange* const range = model.layout().Find(name);
  return Elements(vector.subspan(range->offset, range->length));
}

// 1, 2, 3...
Values Counting(size_t size) {
  Values values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

void Write(const Values& values, FlatModel& model) {
  std::copy(values.begin(), values.end(), model.values().begin());
  model.ScatterValues();
}

// Adds `gradient` to the gradient of `parameter`.
void Backward(const torch::Tensor& parameter, const Values& gradient) {
  (parameter.flatten() * Tensor(gradient)).sum().backward();
}

class FlatModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::set_num_threads(1);
    torch::manual_seed(1);
  }

  Parts module_;
};

// ---- Views ----

TEST_F(FlatModelTest, KeepsTheValuesOfTheModule) {
  auto linear = module_.Child("linear", nn::Linear(3, 2));
  const Values weight = Elements(linear->weight);
  const Values bias = Elements(linear->bias);
  FlatModel model(module_);
  EXPECT_EQ(Elements(linear->weight), weight);
  EXPECT_EQ(Elements(linear->bias), bias);
  EXPECT_EQ(RangeOf(model, "linear.weight", model.values()), weight);
  EXPECT_EQ(RangeOf(model, "linear.bias", model.values()), bias);
}

TEST_F(FlatModelTest, DoesNotDependOnTheDefaultTypeOfTorch) {
  const auto w = module_.Parameter("w", Tensor({1, 2}));
  torch::set_default_dtype(c10::scalarTypeToTypeMeta(torch::kFloat64));
  FlatModel model(module_, FlatModel::Carries::kValues);
  const bool is_view = w.data_ptr() == model.values().data();
  torch::set_default_dtype(c10::scalarTypeToTypeMeta(torch::kFloat32));
  EXPECT_TRUE(is_view);
  EXPECT_THAT(model.values(), ElementsAre(1, 2));
}

TEST_F(FlatModelTest, NamesATensorThatWasReplacedAddedOrMoved) {
  auto linear = module_.Child("linear", nn::Linear(2, 1));
  const auto ema = module_.Buffer("ema", Tensor({1, 2}));
  FlatModel model(module_);
  const auto error = [&model] {
    try {
      model.CheckTensors();
    } catch (const std::invalid_argument& wrong) {
      return std::string(wrong.what());
    }
    return std::string("none");
  };
  {
    const torch::NoGradGuard no_grad;
    ema.copy_(Tensor({3, 4}));
    linear->weight.fill_(7);
  }
  EXPECT_EQ(error(), "none");
  const torch::Tensor taken = linear->weight.data();
  linear->weight.set_data(taken.clone());
  EXPECT_THAT(error(), HasSubstr("\"linear.weight\" lies in other memory"));
  linear->weight.set_data(taken);
  ema.set_data(Tensor({1, 2, 3}));
  EXPECT_THAT(error(), HasSubstr("\"ema\" lies in other memory"));
  module_.replace_module("linear", nn::Linear(2, 1));
  EXPECT_THAT(error(), HasSubstr("\"linear.weight\" was added, removed or replaced"));
  module_.replace_module("linear", linear);
  module_.Buffer("later", Tensor({1}));
  EXPECT_THAT(error(), HasSubstr("\"later\" was added"));
}

TEST_F(FlatModelTest, KeepsTheValuesOfATensorThatIsNotContiguous) {
  const auto w = module_.Parameter("w", Tensor({1, 2, 3, 4, 5, 6}).view({2, 3}).t());
  FlatModel model(module_);
  EXPECT_THAT(Elements(w), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(model.values(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(FlatModelTest, MakesParametersViewsOfTheVector) {
  auto linear = module_.Child("linear", nn::Linear(3, 2));
  FlatModel model(module_);
  EXPECT_EQ(linear->weight.data_ptr<float>(), model.values().data());
  EXPECT_EQ(linear->bias.data_ptr<float>(), model.values().data() + 6);
  Write(Counting(8), model);
  EXPECT_THAT(Elements(linear->weight), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Elements(linear->forward(Tensor({1, 10, 100}))), ElementsAre(321 + 7, 654 + 8));
}

TEST_F(FlatModelTest, BackwardWritesIntoTheVector) {
  const auto a = module_.Parameter("a", torch::ones({2}));
  const auto b = module_.Parameter("b", torch::ones({3}));
  FlatModel model(module_);
  const float* const vector = model.GatherGradients().values.data();
  Backward(a, {1, 2});
  Backward(b, {3, 4, 5});
  EXPECT_EQ(a.grad().data_ptr<float>(), vector);
  EXPECT_EQ(b.grad().data_ptr<float>(), vector + 2);
  EXPECT_THAT(absl::MakeConstSpan(vector, 5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(model.GatherGradients().values.data(), vector);
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(1, 2, 3, 4, 5));
}

// Against a model that no FlatModel has touched.
TEST_F(FlatModelTest, LeavesForwardAndBackwardAsTheyWere) {
  auto flat = module_.Child(
      "net", nn::Sequential(nn::Conv2d(1, 2, 3), nn::ReLU(), nn::Flatten(), nn::Linear(8, 3)));
  const auto plain = std::dynamic_pointer_cast<nn::SequentialImpl>(flat->clone());
  FlatModel model(module_);
  const torch::Tensor images = torch::randn({5, 1, 4, 4});
  flat->forward(images).square().sum().backward();
  plain->forward(images).square().sum().backward();
  const auto expected = plain->named_parameters();
  const absl::Span<const float> gradients = model.GatherGradients().values;
  for (const auto& item : expected) {
    EXPECT_EQ(RangeOf(model, "net." + item.key(), gradients), Elements(item.value().grad()))
        << item.key();
  }
}

TEST_F(FlatModelTest, AddsTheGradientsOfSeveralBackwards) {
  const auto w = module_.Parameter("w", torch::ones({2}));
  FlatModel model(module_);
  Backward(w, {1, 2});
  Backward(w, {10, 20});
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(11, 22));
}

// ---- Gradients that are not views ----

TEST_F(FlatModelTest, TakesInAGradientThatWasReplaced) {
  auto a = module_.Parameter("a", torch::ones({2}));
  auto b = module_.Parameter("b", torch::ones({2}));
  FlatModel model(module_);
  Backward(a, {1, 2});
  Backward(b, {3, 4});
  a.mutable_grad() = Tensor({5, 6});
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 6, 3, 4));
  b.mutable_grad() = b.grad() * 2;
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 6, 6, 8));
}

TEST_F(FlatModelTest, TakesInAGradientThatIsAViewOfAnother) {
  auto a = module_.Parameter("a", torch::ones({2}));
  auto b = module_.Parameter("b", torch::ones({2}));
  FlatModel model(module_);
  Backward(b, {3, 4});
  a.mutable_grad() = b.grad();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(3, 4, 3, 4));
}

TEST_F(FlatModelTest, TakesInAGradientThatWasMovedAndMakesItAViewAgain) {
  auto w = module_.Parameter("w", torch::ones({2}));
  FlatModel model(module_);
  Backward(w, {1, 2});
  w.mutable_grad().set_data(Tensor({3, 4}));
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(3, 4));
  model.ZeroGradients();
  Backward(w, {5, 6});
  EXPECT_EQ(w.grad().data_ptr<float>(), model.GatherGradients().values.data());
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 6));
}

TEST_F(FlatModelTest, TakesInAGradientThatIsNotContiguous) {
  auto w = module_.Parameter("w", torch::ones({2, 3}));
  FlatModel model(module_);
  w.mutable_grad() = Tensor({1, 2, 3, 4, 5, 6}).view({3, 2}).t();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST_F(FlatModelTest, TakesInTheSparseGradientOfAnEmbedding) {
  auto table = module_.Child("table", nn::Embedding(nn::EmbeddingOptions(4, 2).sparse(true)));
  FlatModel model(module_);
  const auto learn = [&table] {
    const torch::Tensor rows = table->forward(torch::tensor({2, 0, 2}));
    (rows * Tensor({1, 2, 3, 4, 5, 6}).view({3, 2})).sum().backward();
  };
  // Into the view, as autograd does, and into nothing, where the gradient stays sparse.
  learn();
  EXPECT_FALSE(table->weight.grad().is_sparse());
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(3, 4, 0, 0, 6, 8, 0, 0));
  table->weight.mutable_grad() = torch::Tensor();
  learn();
  EXPECT_TRUE(table->weight.grad().is_sparse());
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(3, 4, 0, 0, 6, 8, 0, 0));
}

TEST_F(FlatModelTest, CountsAnUndefinedGradientAsZero) {
  auto a = module_.Parameter("a", torch::ones({2}));
  auto b = module_.Parameter("b", torch::ones({2}));
  FlatModel model(module_);
  Backward(a, {1, 2});
  Backward(b, {3, 4});
  a.mutable_grad() = torch::Tensor();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0, 3, 4));
}

TEST_F(FlatModelTest, CountsAParameterThatTheLossDoesNotUseAsZero) {
  const auto used = module_.Parameter("used", torch::ones({1}));
  module_.Parameter("unused", torch::ones({2}));
  FlatModel model(module_);
  Backward(used, {7});
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(7, 0, 0));
}

TEST_F(FlatModelTest, ZeroGradientsZeroesThemAndMakesThemViewsAgain) {
  auto w = module_.Parameter("w", torch::ones({2}));
  FlatModel model(module_);
  Backward(w, {1, 2});
  w.mutable_grad() = Tensor({3, 4});
  model.ZeroGradients();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0));
  EXPECT_EQ(w.grad().data_ptr<float>(), model.GatherGradients().values.data());
  Backward(w, {5, 6});
  EXPECT_EQ(w.grad().data_ptr<float>(), model.GatherGradients().values.data());
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 6));
}

TEST_F(FlatModelTest, SurvivesTheModulesOwnZeroGrad) {
  const auto w = module_.Parameter("w", torch::ones({2}));
  FlatModel model(module_);
  for (const bool set_to_none : {false, true}) {
    Backward(w, {1, 2});
    module_.zero_grad(set_to_none);
    EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0));
    Backward(w, {3, 4});
    EXPECT_THAT(model.GatherGradients().values, ElementsAre(3, 4));
    module_.zero_grad(set_to_none);
  }
}

// ---- Statistics ----

TEST_F(FlatModelTest, PushesTheRunningStatisticsOfBatchNorm) {
  auto norm = module_.Child("norm", nn::BatchNorm1d(1));
  FlatModel model(module_);
  EXPECT_EQ(model.layout().Find("norm.weight")->kind, RangeKind::kParameter);
  EXPECT_EQ(model.layout().Find("norm.running_mean")->kind, RangeKind::kStatistic);
  EXPECT_EQ(model.layout().Find("norm.running_var")->kind, RangeKind::kStatistic);
  // Mean 4, variance 8; momentum is 0.1.
  norm->forward(Tensor({2, 6}).view({2, 1}));
  const absl::Span<const float> pushed = model.GatherGradients().values;
  EXPECT_THAT(RangeOf(model, "norm.running_mean", pushed), ElementsAre(0.4f));
  EXPECT_THAT(RangeOf(model, "norm.running_var", pushed), ElementsAre(0.9f + 0.8f));
}

TEST_F(FlatModelTest, TakesTheStatisticsFromTheVector) {
  auto norm = module_.Child("norm", nn::BatchNorm1d(1));
  FlatModel model(module_);
  Write({1, 0, 10, 4, 1}, model);  // weight, bias, mean, variance, count
  norm->eval();
  EXPECT_THAT(Elements(norm->running_mean), ElementsAre(10));
  EXPECT_THAT(Elements(norm->running_var), ElementsAre(4));
  EXPECT_NEAR(norm->forward(torch::full({1, 1}, 14.0f)).item<float>(), 2, 1e-5);
}

TEST_F(FlatModelTest, PushesTheCountOfBatchesAndTakesItRounded) {
  auto norm = module_.Child("norm", nn::BatchNorm1d(1));
  FlatModel model(module_);
  EXPECT_EQ(model.layout().Find("norm.num_batches_tracked")->dtype, DataType::kInt64);
  norm->forward(Tensor({2, 6}).view({2, 1}));
  EXPECT_THAT(RangeOf(model, "norm.num_batches_tracked", model.GatherGradients().values),
              ElementsAre(1));
  Write({1, 0, 10, 4, 2.99999F}, model);  // weight, bias, mean, variance, count
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 3);
}

// ---- Constants ----

ConstantTensor ConstantOf(const std::string& name, const std::vector<uint64_t>& shape,
                          const std::string& dtype) {
  return {name, shape, dtype};
}

TEST_F(FlatModelTest, WhatIsNotTrainedIsAConstantOfItsOwnType) {
  module_.Frozen("frozen", Tensor({0.1f, 0.2f}));
  module_.Frozen("base", torch::full({2, 2}, -7, torch::kInt8));
  module_.Parameter("w", torch::ones({1}));
  module_.Buffer("mask", torch::full({2}, -INFINITY));
  module_.Buffer("order", torch::arange(3));
  module_.Buffer("flag", torch::tensor(true));
  module_.Buffer("nothing", torch::empty({0, 3}));
  module_.Buffer("mean", torch::ones({2}));
  FlatModel model(module_);
  EXPECT_EQ(model.values().size(), 3u);  // w and mean
  EXPECT_THAT(model.layout().constants(),
              ElementsAre(ConstantOf("frozen", {2}, "F32"), ConstantOf("base", {2, 2}, "I8"),
                          ConstantOf("mask", {2}, "F32"), ConstantOf("order", {3}, "I64"),
                          ConstantOf("flag", {}, "BOOL"), ConstantOf("nothing", {0, 3}, "F32")));
  ASSERT_EQ(model.constants().size(), 6u);
  EXPECT_EQ(model.constants()[1].size(), 4u);
  EXPECT_EQ(model.constants()[1][0], -7);
}

TEST_F(FlatModelTest, AConstantIsWhereTheLibraryWritesOrIsCopiedFromThere) {
  module_.Parameter("w", torch::ones({1}));
  const auto whole = module_.Buffer("whole", torch::arange(3));
  const auto gaps = module_.Buffer("gaps", torch::arange(4).view({2, 2}).t());
  FlatModel model(module_);
  const auto write = [&](size_t constant, int64_t value) {
    std::memcpy(model.constants()[constant].data(), &value, sizeof(value));
  };
  write(0, 70);
  write(1, 80);
  EXPECT_EQ(whole[0].item<int64_t>(), 70);
  EXPECT_EQ(gaps[0][0].item<int64_t>(), 0);
  model.ScatterConstants();
  EXPECT_EQ(gaps[0][0].item<int64_t>(), 80);
  EXPECT_EQ(gaps[0][1].item<int64_t>(), 2);
}

// The vector has 1700000128 in its place.
TEST_F(FlatModelTest, AStatisticOf64BitsKeepsThemUntilABatchChangesIt) {
  module_.Parameter("w", torch::ones({1}));
  const auto wide = module_.Buffer("wide", torch::full({1}, 1700000123.456, torch::kFloat64));
  FlatModel model(module_);
  EXPECT_THAT(model.layout().constants(), ElementsAre(ConstantOf("wide", {1}, "F64")));
  model.GatherValues();
  model.ScatterValues();
  EXPECT_EQ(wide.item<double>(), 1700000123.456);
  Write({1, 5}, model);
  EXPECT_EQ(wide.item<double>(), 5);
}

// ---- Other element types ----

struct ElementType {
  std::string name;
  torch::ScalarType torch;
  DataType ours;
};

class FlatModelElementTypeTest : public ::testing::TestWithParam<ElementType> {};

TEST_P(FlatModelElementTypeTest, IsConvertedBothWays) {
  Parts module;
  auto w = module.Parameter("w", Tensor({0.5f, -3}).to(GetParam().torch));
  const auto mean = module.Buffer("mean", Tensor({1.5f}).to(GetParam().torch));
  FlatModel model(module);
  EXPECT_EQ(model.layout().Find("w")->dtype, GetParam().ours);
  EXPECT_EQ(model.layout().Find("mean")->dtype, GetParam().ours);
  EXPECT_THAT(model.GatherValues(), ElementsAre(0.5f, -3, 1.5f));

  w.mutable_grad() = Tensor({0.25f, 64}).to(GetParam().torch);
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(0.25f, 64, 1.5f));

  Write({2, 1 + 1.0f / 4096, -0.75f}, model);
  EXPECT_EQ(w.scalar_type(), GetParam().torch);
  EXPECT_TRUE(w.equal(Tensor({2, 1 + 1.0f / 4096}).to(GetParam().torch)));
  EXPECT_TRUE(mean.equal(Tensor({-0.75f}).to(GetParam().torch)));
}

TEST_P(FlatModelElementTypeTest, TakesInWhatBackwardMakes) {
  Parts module;
  const auto w = module.Parameter("w", torch::ones({2}, GetParam().torch));
  FlatModel model(module);
  for (int round = 0; round < 2; ++round) {
    model.ZeroGradients();
    EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0));
    w.backward(Tensor({1, 2}).to(GetParam().torch));
    w.backward(Tensor({3, 4}).to(GetParam().torch));
    EXPECT_THAT(model.GatherGradients().values, ElementsAre(4, 6));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FlatModelElementTypeTest,
    ::testing::Values(ElementType{"Float64", torch::kFloat64, DataType::kFloat64},
                      ElementType{"Float16", torch::kFloat16, DataType::kFloat16},
                      ElementType{"BFloat16", torch::kBFloat16, DataType::kBFloat16}),
    [](const ::testing::TestParamInfo<ElementType>& info) { return info.param.name; });

TEST_P(FlatModelElementTypeTest, OneBufferCarriesGradientsAndValuesInTurn) {
  Parts module;
  auto w = module.Parameter("w", Tensor({1, 2}).to(GetParam().torch));
  auto b = module.Parameter("b", Tensor({3}));
  FlatModel model(module);
  EXPECT_TRUE(model.has_one_buffer());
  EXPECT_EQ(model.values().data(), model.shared_gradients().values.data());
  EXPECT_EQ(model.values().data(), model.gradient_memory()->floats().data());
  EXPECT_THAT(model.gradient_views(), ::testing::IsEmpty());

  (w.to(torch::kFloat32).sum() * 5 + b.sum() * 7).backward();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 5, 7));
  Write({10, 20, 30}, model);
  EXPECT_THAT(Elements(w), ElementsAre(10, 20));
  EXPECT_THAT(Elements(b), ElementsAre(30));
  EXPECT_THAT(Elements(b.grad()), ElementsAre(7)) << "the gradient is still the program's to see";

  model.ZeroGradients();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0, 0));
  EXPECT_THAT(model.GatherValues(), ElementsAre(10, 20, 30));
}

TEST_P(FlatModelElementTypeTest, HasTwoBuffersIfParametersArePushed) {
  Parts module;
  module.Parameter("w", Tensor({1, 2}).to(GetParam().torch));
  FlatModel model(module, FlatModel::Carries::kValues);
  EXPECT_FALSE(model.has_one_buffer());
  EXPECT_THAT(model.values(), ElementsAre(1, 2));
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(0, 0));
  EXPECT_THAT(model.values(), ElementsAre(1, 2));
}

TEST_F(FlatModelTest, HasTwoBuffersIfHalfOfTheElementsAreViews) {
  const auto view = module_.Parameter("view", Tensor({1, 2}));
  module_.Parameter("copy", torch::ones({2}, torch::kBFloat16));
  FlatModel model(module_);
  EXPECT_FALSE(model.has_one_buffer());
  EXPECT_EQ(view.data_ptr<float>(), model.values().data());
}

TEST_F(FlatModelTest, MixesViewsWithTensorsOfOtherTypes) {
  const auto a = module_.Parameter("a", Tensor({1, 2}));
  const auto b = module_.Parameter("b", Tensor({3}).to(torch::kFloat64));
  const auto c = module_.Parameter("c", Tensor({4}));
  FlatModel model(module_);
  EXPECT_THAT(model.values(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(c.data_ptr<float>(), model.values().data() + 3);
  (a.sum() * 5 + b.sum() * 6 + c.sum() * 7).backward();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(5, 5, 6, 7));
  Write({10, 20, 30, 40}, model);
  EXPECT_THAT(Elements(a), ElementsAre(10, 20));
  EXPECT_THAT(Elements(b), ElementsAre(30));
  EXPECT_THAT(Elements(c), ElementsAre(40));
}

TEST_F(FlatModelTest, GathersTheValuesOfTensorsThatAreNoViewsAsTheModuleChangedThem) {
  const auto view = module_.Parameter("view", Tensor({1, 2}));
  const auto copy = module_.Parameter("copy", torch::ones({2}, torch::kFloat64));
  FlatModel model(module_);
  {
    const torch::NoGradGuard no_grad;
    view.mul_(10);
    copy.copy_(Tensor({3, 4}));
  }
  EXPECT_THAT(model.values(), ElementsAre(10, 20, 1, 1));
  EXPECT_THAT(model.GatherValues(), ElementsAre(10, 20, 3, 4));
  EXPECT_EQ(model.GatherValues().data(), model.values().data());
}

// ---- The layout ----

TEST_F(FlatModelTest, ListsParametersThenStatisticsWithTheirNamesShapesAndOffsets) {
  module_.Parameter("scale", torch::tensor(2.0f));
  module_.Child("conv", nn::Conv2d(nn::Conv2dOptions(1, 2, 3).bias(false)));
  module_.Child("norm", nn::BatchNorm2d(2));
  const FlatModel model(module_);
  const auto range = [](const std::string& name, const std::vector<uint32_t>& shape, RangeKind kind,
                        uint64_t offset, uint64_t length) {
    LayoutRange range;
    range.name = name;
    range.shape = shape;
    range.kind = kind;
    range.offset = offset;
    range.length = length;
    return range;
  };
  LayoutRange count = range("norm.num_batches_tracked", {}, RangeKind::kStatistic, 27, 1);
  count.dtype = DataType::kInt64;
  EXPECT_THAT(model.layout().ranges(),
              ElementsAre(range("scale", {}, RangeKind::kParameter, 0, 1),
                          range("conv.weight", {2, 1, 3, 3}, RangeKind::kParameter, 1, 18),
                          range("norm.weight", {2}, RangeKind::kParameter, 19, 2),
                          range("norm.bias", {2}, RangeKind::kParameter, 21, 2),
                          range("norm.running_mean", {2}, RangeKind::kStatistic, 23, 2),
                          range("norm.running_var", {2}, RangeKind::kStatistic, 25, 2), count));
}

// ---- Tied parameters ----

// LibTorch's named_parameters() lists a shared tensor once for each of its names.
TEST_F(FlatModelTest, CountsATiedParameterOnceUnderItsFirstName) {
  auto linear = nn::Linear(nn::LinearOptions(1, 1).bias(false));
  module_.Child("encoder", linear);
  module_.Child("decoder", linear);
  ASSERT_EQ(module_.named_parameters().size(), 2u);
  FlatModel model(module_);
  ASSERT_EQ(model.layout().ranges().size(), 1u);
  EXPECT_EQ(model.layout().ranges()[0].name, "encoder.weight");
  EXPECT_EQ(linear->weight.data_ptr<float>(), model.values().data());
  Write({3}, model);
  const torch::Tensor twice = linear->forward(linear->forward(torch::ones({1})));
  EXPECT_EQ(twice.item<float>(), 9);
  twice.sum().backward();
  EXPECT_THAT(model.GatherGradients().values, ElementsAre(6));  // of w · w
}

TEST_F(FlatModelTest, CountsATiedParameterOfAnotherTypeOnce) {
  auto linear = nn::Linear(nn::LinearOptions(1, 1).bias(false));
  linear->to(torch::kFloat64);
  module_.Child("encoder", linear);
  module_.Child("decoder", linear);
  FlatModel model(module_);
  EXPECT_EQ(model.values().size(), 1u);
}

// ---- Refusals ----

// What FlatModel says about `module`; empty if it takes it.
std::string Refusal(nn::Module& module) {
  try {
    const FlatModel model(module);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST_F(FlatModelTest, RefusesAModuleWithoutParameters) {
  EXPECT_THAT(Refusal(module_), HasSubstr("no parameter"));
}

TEST_F(FlatModelTest, RefusesAModuleInWhichNothingIsTrained) {
  module_.Frozen("frozen", torch::ones({2}));
  module_.Buffer("mean", torch::ones({2}));
  EXPECT_THAT(Refusal(module_),
              HasSubstr("no parameter that requires a gradient, and no RemoteEmbedding"));
}

TEST_F(FlatModelTest, RefusesTensorsThatShareMemory) {
  const auto a = module_.Parameter("a", torch::ones({2}));
  auto b = module_.Parameter("b", torch::zeros({2}));
  b.set_data(a.detach());
  const std::string refusal = Refusal(module_);
  EXPECT_THAT(refusal, HasSubstr("\"b\" shares memory with \"a\""));
  EXPECT_THAT(Elements(b), ElementsAre(1, 1));
}

TEST_F(FlatModelTest, RefusesAComplexParameter) {
  module_.Parameter("spectrum", torch::ones({2}, torch::kComplexFloat));
  EXPECT_EQ(Refusal(module_),
            "parameter \"spectrum\" has element type ComplexFloat, expected a real floating-point "
            "type");
}

TEST_F(FlatModelTest, RefusesAnEmptyParameterByName) {
  module_.Parameter("w", torch::ones({2}));
  module_.Parameter("nothing", torch::ones({0, 3}));
  EXPECT_THAT(Refusal(module_), HasSubstr("nothing"));
}

TEST_F(FlatModelTest, LeavesARefusedModuleAsItWas) {
  const auto w = module_.Parameter("w", Tensor({1, 2}));
  module_.Parameter("spectrum", torch::ones({2}, torch::kComplexFloat));
  const float* const before = w.data_ptr<float>();
  EXPECT_NE(Refusal(module_), "");
  EXPECT_EQ(w.data_ptr<float>(), before);
  EXPECT_FALSE(w.grad().defined());
}

// Each tensor is looked up among the others once, not compared with all of them.
TEST(LargeFlatModelTest, HoldsAHundredThousandTensors) {
  Parts module;
  for (int i = 0; i < 100000; ++i) {
    module.Parameter(std::to_string(i), Tensor({static_cast<float>(i)}));
  }
  FlatModel model(module);
  ASSERT_EQ(model.layout().ranges().size(), 100000u);
  EXPECT_EQ(RangeOf(model, "99999", model.values()), Values({99999}));
}

}  // namespace
}  // namespace sluice
