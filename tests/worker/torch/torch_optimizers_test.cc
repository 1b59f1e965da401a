#include "worker/torch/torch_optimizers.h"

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using Group = torch::optim::OptimizerParamGroup;

// Two parameters, one of which is frozen if asked for, and a second name for the first.
class Net : public torch::nn::Module {
 public:
  explicit Net(bool frozen = false)
      : a(register_parameter("a", torch::ones({2}))),
        b(register_parameter("b", torch::ones({3}), !frozen)) {
    register_parameter("tied", a);
  }

  torch::Tensor a;
  torch::Tensor b;
};

// What `body` threw.
std::string ErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

// ---- Options ----

TEST(TorchOptimizersTest, TakesTorchsDefaultsForItsOwn) {
  const auto same = [](const torch::optim::OptimizerOptions& theirs, const OptimizerOptions& ours) {
    EXPECT_EQ(CheckSameOptimizer(ours, ConfigOf(theirs).options), absl::OkStatus());
  };
  SgdOptions sgd;
  sgd.learning_rate = 0.5;  // which torch::optim::SGD has no default for
  same(torch::optim::SGDOptions(0.5), sgd);
  same(torch::optim::AdamOptions(), AdamOptions());
  same(torch::optim::AdamWOptions(), AdamWOptions());
  same(torch::optim::AdagradOptions(), AdagradOptions());
  same(torch::optim::RMSpropOptions(), RmsPropOptions());
}

TEST(TorchOptimizersTest, TakesEveryOption) {
  const auto of_adam = ConfigOf(
      torch::optim::AdamOptions(0.5).betas({0.25, 0.75}).eps(0.1).weight_decay(0.2).amsgrad(true));
  const AdamOptions adam = {0.5, 0.25, 0.75, 0.1, 0.2, true};
  EXPECT_EQ(CheckSameOptimizer(adam, of_adam.options), absl::OkStatus());
  const auto of_adagrad = ConfigOf(torch::optim::AdagradOptions(0.5)
                                       .lr_decay(0.1)
                                       .weight_decay(0.2)
                                       .initial_accumulator_value(0.3)
                                       .eps(0.4));
  const AdagradOptions adagrad = {0.5, 0.1, 0.2, 0.3, 0.4};
  EXPECT_EQ(CheckSameOptimizer(adagrad, of_adagrad.options), absl::OkStatus());
  const auto of_rmsprop = ConfigOf(torch::optim::RMSpropOptions(0.5)
                                       .alpha(0.1)
                                       .eps(0.2)
                                       .weight_decay(0.3)
                                       .momentum(0.4)
                                       .centered(true));
  const RmsPropOptions rmsprop = {0.5, 0.1, 0.2, 0.3, 0.4, true};
  EXPECT_EQ(CheckSameOptimizer(rmsprop, of_rmsprop.options), absl::OkStatus());
}

TEST(TorchOptimizersTest, RefusesAnOptimizerThatNoServerHas) {
  EXPECT_THAT(ErrorOf([] { ConfigOf(torch::optim::LBFGSOptions(1)); }),
              HasSubstr("expected those of SGD, Adam, AdamW, Adagrad or RMSprop"));
}

// ---- Groups ----

TEST(TorchOptimizersTest, GivesAGroupWithoutOptionsTheDefaults) {
  const Net net;
  const std::vector<Group> groups = {
      Group({net.b}, std::make_unique<torch::optim::AdamOptions>(0.25)), Group({net.a})};
  const OptimizerConfig config = ConfigOf(groups, torch::optim::AdamOptions(0.5), net);
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_THAT(config.groups[0].parameters, ElementsAre("b"));
  EXPECT_EQ(LearningRateOf(config.groups[0].options), 0.25);
  EXPECT_THAT(config.groups[1].parameters, ElementsAre("a"));
  EXPECT_EQ(LearningRateOf(config.groups[1].options), 0.5);
}

// As torch::optim::Adagrad itself has it.
TEST(TorchOptimizersTest, GivesAllGroupsOfAdagradTheDefaultsInitialValue) {
  const Net net;
  auto own = std::make_unique<torch::optim::AdagradOptions>(0.25);
  const std::vector<Group> groups = {Group({net.a, net.b}, std::move(own))};
  const auto config =
      ConfigOf(groups, torch::optim::AdagradOptions(0.5).initial_accumulator_value(0.75), net);
  EXPECT_EQ(std::get<AdagradOptions>(config.groups[0].options).initial_accumulator_value, 0.75);
}

TEST(TorchOptimizersTest, FindsTheOptionsThatAProgramHasChanged) {
  const Net net;
  AdamOptions own;
  own.learning_rate = 0.25;
  for (const bool all_in_groups : {false, true}) {
    const std::vector<std::string> names =
        all_in_groups ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b"};
    const OptimizerConfig config = {AdamOptions(), {{names, own}}};
    const auto made = MakeTorchOptimizer(config, net);
    EXPECT_THAT(ChangedIn(*made, config), IsEmpty());
    made->param_groups().back().options().set_lr(0.125);
    const ChangedOptions::Groups changed = ChangedIn(*made, config);
    ASSERT_THAT(changed, ElementsAre(Key(1)));
    EXPECT_EQ(std::get<AdamOptions>(changed.at(1)).learning_rate, 0.125);
  }
}

// Each tensor is looked up once, on the way to our options and back.
TEST(TorchOptimizersTest, FindsAHundredThousandParametersInTheirGroups) {
  torch::nn::Module module;
  std::vector<Group> groups = {Group(std::vector<torch::Tensor>()),
                               Group(std::vector<torch::Tensor>())};
  for (int i = 0; i < 100000; ++i) {
    groups[i % 2].params().push_back(
        module.register_parameter(std::to_string(i), torch::zeros({1})));
  }
  const OptimizerConfig config = ConfigOf(groups, torch::optim::AdamOptions(0.5), module);
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_EQ(config.groups[0].parameters.size(), 50000u);
  EXPECT_EQ(config.groups[1].parameters.back(), "99999");
  const auto optimizer = MakeTorchOptimizer(config, module);
  ASSERT_EQ(optimizer->param_groups().size(), 2u);  // none for parameters in no group
  EXPECT_EQ(optimizer->param_groups()[1].params().size(), 50000u);
}

TEST(TorchOptimizersTest, LeavesFrozenParametersOut) {
  const Net net(/*frozen=*/true);
  const auto config = ConfigOf({Group({net.b}), Group({net.a})}, torch::optim::AdamOptions(), net);
  ASSERT_EQ(config.groups.size(), 1u);
  EXPECT_THAT(config.groups[0].parameters, ElementsAre("a"));
}

TEST(TorchOptimizersTest, RefusesAParameterInNoGroup) {
  const Net net;
  EXPECT_THAT(ErrorOf([&] { ConfigOf({Group({net.a})}, torch::optim::AdamOptions(), net); }),
              HasSubstr("parameter \"b\" is in no parameter group"));
}

TEST(TorchOptimizersTest, RefusesATensorThatIsInTwoGroupsOrNotOfTheModel) {
  const Net net;
  const auto with = [&net](const torch::Tensor& third) {
    ConfigOf({Group({net.a, net.b}), Group({third})}, torch::optim::AdamOptions(), net);
  };
  EXPECT_THAT(ErrorOf([&] { with(net.a); }), HasSubstr("holds a tensor that is"));
  EXPECT_THAT(ErrorOf([&] { with(torch::ones({2}, torch::requires_grad())); }),
              HasSubstr("holds a tensor that is"));
}

// ---- Optimizers ----

TEST(TorchOptimizersTest, MakesOneWhoseGroupsHaveTheirOwnOptions) {
  const Net net;
  AdamOptions own;
  own.learning_rate = 0.25;
  const auto made = MakeTorchOptimizer({AdamOptions(), {{{"b"}, own}}}, net);
  ASSERT_NE(dynamic_cast<torch::optim::Adam*>(made.get()), nullptr);
  ASSERT_EQ(made->param_groups().size(), 2u);
  ASSERT_EQ(made->param_groups()[0].params().size(), 1u);  // tied: one tensor
  EXPECT_TRUE(made->param_groups()[0].params()[0].is_same(net.a));
  EXPECT_TRUE(made->param_groups()[1].params()[0].is_same(net.b));
  EXPECT_EQ(made->param_groups()[1].options().get_lr(), 0.25);
}

TEST(TorchOptimizersTest, SetsTheLearningRateOfEachGroupInProportionToItsOwn) {
  const Net net;
  AdamOptions defaults, own;
  defaults.learning_rate = 0.5;
  own.learning_rate = 0.25;
  const OptimizerConfig config = {defaults, {{{"b"}, own}}};
  const auto made = MakeTorchOptimizer(config, net);
  for (const double factor : {0.5, 1.0}) {
    SetLearningRates(config, factor, *made);
    EXPECT_EQ(made->param_groups()[0].options().get_lr(), factor * 0.5);
    EXPECT_EQ(made->param_groups()[1].options().get_lr(), factor * 0.25);
  }
}

TEST(TorchOptimizersTest, HasNoLamb) {
  const Net net;
  EXPECT_THAT(ErrorOf([&] { MakeTorchOptimizer({LambOptions()}, net); }),
              HasSubstr("torch::optim has no lamb"));
}

}  // namespace
}  // namespace sluice
