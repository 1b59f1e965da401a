#include "worker/compression/momentum_correction.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

SgdOptions Sgd(double momentum) {
  SgdOptions sgd;
  sgd.momentum = momentum;
  return sgd;
}

// SGD, with one group for each of `of_groups`.
OptimizerConfig Config(double momentum, const std::vector<double>& of_groups = {}) {
  OptimizerConfig config;
  config.options = Sgd(momentum);
  for (const double of_group : of_groups) config.groups.push_back({{"w"}, Sgd(of_group)});
  return config;
}

double MomentumOf(const OptimizerOptions& options) {
  return std::get<SgdOptions>(options).momentum;
}

TEST(TakeMomentumTest, LeavesNoneToTheServerAlsoInGroups) {
  OptimizerConfig config = Config(0.9, {0.9, 0.9});
  EXPECT_THAT(TakeMomentum(Layout(), &config), IsOkAndHolds(0.9f));
  EXPECT_EQ(MomentumOf(config.options), 0);
  for (const OptimizerGroup& group : config.groups) EXPECT_EQ(MomentumOf(group.options), 0);
}

TEST(TakeMomentumTest, LeavesEachTableTheOptimizerThatItHad) {
  TableSpec items;
  items.name = "items";
  items.width = 2;
  TableSpec users = items;
  users.name = "users";
  OptimizerConfig config = Config(0.9);
  config.tables = {{"users", Sgd(0.5)}};
  ASSERT_THAT(TakeMomentum(*Layout::Create({}, {items, users}), &config), IsOkAndHolds(0.9f));
  EXPECT_EQ(config.tables.size(), 2u);
  EXPECT_EQ(MomentumOf(OptionsFor(config, "items")), 0.9);
  EXPECT_EQ(MomentumOf(OptionsFor(config, "users")), 0.5);
}

TEST(TakeMomentumTest, RefusesGroupsOfWhichOneHasAnother) {
  for (const auto& of_groups : {std::vector<double>{0.5, 0.9}, std::vector<double>{0.9, 0.5}}) {
    OptimizerConfig config = Config(0.9, of_groups);
    EXPECT_THAT(TakeMomentum(Layout(), &config),
                IsError(Reason::kBadOptimizer, HasSubstr("groups with a momentum of 0.9 and 0.5")));
  }
}

TEST(TakeMomentumTest, RefusesGroupsWithoutMomentum) {
  OptimizerConfig config = Config(0.9, {0});
  EXPECT_THAT(TakeMomentum(Layout(), &config),
              IsError(Reason::kBadOptimizer, HasSubstr("found a momentum of 0")));
}

TEST(TakeMomentumTest, RefusesWhatNeedsTheMomentumOnTheServer) {
  OptimizerConfig nesterov = Config(0.9);
  std::get<SgdOptions>(nesterov.options).nesterov = true;
  EXPECT_THAT(TakeMomentum(Layout(), &nesterov),
              IsError(Reason::kBadOptimizer, HasSubstr("Nesterov:")));
  OptimizerConfig dampened = Config(0.9);
  std::get<SgdOptions>(dampened.options).dampening = 0.25;
  EXPECT_THAT(TakeMomentum(Layout(), &dampened),
              IsError(Reason::kBadOptimizer, HasSubstr("a dampening of 0.25")));
  OptimizerConfig decaying = Config(0.9);
  std::get<SgdOptions>(decaying.options).weight_decay = 0.5;
  EXPECT_THAT(TakeMomentum(Layout(), &decaying),
              IsError(Reason::kBadOptimizer, HasSubstr("a weight decay of 0.5")));
  OptimizerConfig other;
  other.options = AdamOptions();
  EXPECT_THAT(TakeMomentum(Layout(), &other),
              IsError(Reason::kBadOptimizer, HasSubstr("found adam")));
}

TEST(AdviceOnMomentumTest, NamesTheFlagWhereMomentumWouldBeTaken) {
  EXPECT_THAT(AdviceOnMomentum(*ParseEncodingChoice("top-k:0.01"), Config(0.9)),
              StartsWith("with --push-encoding=top-k:0.01"));
  EXPECT_THAT(AdviceOnMomentum(*ParseEncodingChoice("top-k:0.01"), Config(0.9)),
              HasSubstr("use --push-encoding=top-k:0.01:momentum"));
}

TEST(AdviceOnMomentumTest, IsSilentWhereItIsTakenCannotBeOrWouldNotHelp) {
  EXPECT_EQ(AdviceOnMomentum(*ParseEncodingChoice("top-k:0.01:momentum"), Config(0.9)), "");
  EXPECT_EQ(AdviceOnMomentum(*ParseEncodingChoice("top-k:0.01"), Config(0)), "");
  EXPECT_EQ(AdviceOnMomentum(*ParseEncodingChoice("top-k:0.01"), Config(0.9, {0.5})), "");
  EXPECT_EQ(AdviceOnMomentum(*ParseEncodingChoice("float16"), Config(0.9)), "");
}

}  // namespace
}  // namespace sluice
