#include "server/program/training_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

// What a command line comes to, with as many workers launched (0: nobody knows).
absl::StatusOr<ShardOptions> Apply(Arguments arguments, uint32_t launched = 0,
                                   uint64_t pushes = 0) {
  CLI::App app;
  TrainingFlags flags;
  flags.pushes = pushes;
  AddTrainingFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return absl::InternalError(error.what());
  }
  ShardOptions options;
  const absl::Status applied = ApplyTrainingFlags(flags, launched, &options);
  if (!applied.ok()) return applied;
  return options;
}

// The steps of a cosine whose end is known from more than the pushes of all.
uint64_t CosineSteps(const TrainingFlags& end, const Arguments& arguments, uint32_t launched) {
  CLI::App app;
  TrainingFlags flags = end;
  AddTrainingFlags(app, flags);
  Arguments reversed(arguments.rbegin(), arguments.rend());
  reversed.push_back("--lr-schedule=cosine");
  app.parse(reversed);
  ShardOptions options;
  EXPECT_THAT(ApplyTrainingFlags(flags, launched, &options), IsOk());
  return options.schedule.total_steps;
}

// Of a command line that is right.
ShardOptions Options(const Arguments& arguments, uint32_t launched = 0) {
  auto options = Apply(arguments, launched);
  EXPECT_THAT(options, IsOk());
  return options.value_or(ShardOptions());
}

Consistency Terms(const Arguments& arguments, uint32_t launched = 0) {
  return Options(arguments, launched).consistency;
}

// ---- Defaults ----

TEST(TrainingFlagsTest, AreThoseOfSyncWithNothingElse) {
  const ShardOptions options = Options({});
  EXPECT_EQ(options.consistency.mode, ConsistencyMode::kSync);
  EXPECT_EQ(options.consistency.quorum, 1u);
  EXPECT_EQ(options.consistency.max_staleness, absl::nullopt);
  EXPECT_EQ(options.consistency.slack, 0u);
  EXPECT_EQ(options.consistency.reduction, Reduction::kMean);
  EXPECT_FALSE(options.consistency.discount_stale);
  EXPECT_EQ(options.consistency.gap_aware, RuleChoice::kAuto);
  EXPECT_EQ(options.consistency.ordered_momentum, RuleChoice::kAuto);
  EXPECT_FALSE(options.consistency.inconsistent_reads);
  EXPECT_EQ(options.consistency.max_step_wait, absl::InfiniteDuration());
  EXPECT_EQ(options.consistency.on_max_step_wait, StepWaitAction::kWait);
  EXPECT_EQ(options.expected_workers, 1u);
  EXPECT_TRUE(options.schedule.is_constant());
  EXPECT_FALSE(options.guards.skip_not_finite);
  EXPECT_EQ(options.guards.clip_norm, absl::nullopt);
  EXPECT_EQ(options.guards.max_push_norm, absl::nullopt);
  EXPECT_EQ(options.guards.on_divergence, DivergenceAction::kWarn);
}

TEST(TrainingFlagsTest, ReduceInRankOrderInSyncAndElsewhereAsGradientsArrive) {
  EXPECT_EQ(Terms({}).order, ReductionOrder::kRank);
  EXPECT_EQ(Terms({"--reduction-order=arrival"}).order, ReductionOrder::kArrival);
  for (const Arguments& arguments : {Arguments{"--mode=backup"},
                                     {"--mode=bounded", "--max-staleness=1"},
                                     {"--mode=ssp"},
                                     {"--mode=async"}}) {
    EXPECT_EQ(Terms(arguments).order, ReductionOrder::kArrival) << arguments[0];
  }
}

TEST(TrainingFlagsTest, WaitForAllThatWereLaunchedUnlessTold) {
  for (const char* mode : {"--mode=sync", "--mode=backup", "--mode=ssp", "--mode=async"}) {
    EXPECT_EQ(Options({mode}).expected_workers, 1u) << mode;
  }
  for (const char* mode :
       {"--mode=sync", "--mode=backup", "--mode=bounded", "--mode=ssp", "--mode=async"}) {
    EXPECT_EQ(Options({mode}, 5).expected_workers, 5u) << mode;
    EXPECT_EQ(Options({mode, "--workers=3"}, 5).expected_workers, 3u) << mode;
    EXPECT_EQ(Options({mode, "--workers=3"}).expected_workers, 3u) << mode;
  }
}

TEST(TrainingFlagsTest, LeaveFivePercentOfTheWorkersAndAtLeastOneForBackups) {
  EXPECT_EQ(Terms({"--mode=backup"}, 5).quorum, 4u);
  EXPECT_EQ(Terms({"--mode=backup"}, 40).quorum, 38u);
  EXPECT_EQ(Terms({"--mode=backup", "--workers=3"}).quorum, 2u);
  EXPECT_EQ(Terms({"--mode=backup", "--quorum=2"}, 5).quorum, 2u);
  // With one worker there is none to spare.
  EXPECT_EQ(Terms({"--mode=backup"}, 1).quorum, 1u);
  EXPECT_EQ(Terms({"--mode=backup"}).quorum, 1u);
}

TEST(TrainingFlagsTest, WaitForTheQuorumOfBackupIfNobodyKnowsHowManyWereLaunched) {
  const ShardOptions options = Options({"--mode=backup", "--quorum=4"});
  EXPECT_EQ(options.expected_workers, 4u);
  EXPECT_EQ(options.consistency.quorum, 4u);
}

TEST(TrainingFlagsTest, MakeAStepOfEveryGradientInBoundedAndAsync) {
  EXPECT_EQ(Terms({"--mode=async"}, 5).quorum, 1u);
  EXPECT_EQ(Terms({"--mode=bounded", "--max-staleness=2"}, 5).quorum, 1u);
  EXPECT_EQ(Options({"--mode=async", "--quorum=3"}).expected_workers, 1u);
}

TEST(TrainingFlagsTest, BoundTheStalenessByTwiceTheStepsThatAllWorkersMake) {
  const auto bound = [](const Arguments& arguments, uint32_t launched) {
    return Terms(arguments, launched).max_staleness;
  };
  EXPECT_EQ(bound({"--mode=bounded"}, 3), absl::make_optional(6u));
  EXPECT_EQ(bound({"--mode=bounded", "--workers=8"}, 3), absl::make_optional(16u));
  EXPECT_EQ(bound({"--mode=bounded", "--workers=8"}, 0), absl::make_optional(16u));
  EXPECT_EQ(bound({"--mode=bounded", "--workers=8", "--quorum=4"}, 0), absl::make_optional(4u));
  EXPECT_EQ(bound({"--mode=bounded", "--max-staleness=0"}, 3), absl::make_optional(0u));
}

TEST(TrainingFlagsTest, LetWorkersBeThreePushesAheadInSsp) {
  EXPECT_EQ(Terms({"--mode=ssp"}).slack, 3u);
  EXPECT_EQ(Terms({"--mode=ssp"}, 16).slack, 3u);
  EXPECT_EQ(Terms({"--mode=async"}, 16).slack, 0u);
}

// ---- Each flag ----

TEST(TrainingFlagsTest, ChooseTheMode) {
  EXPECT_EQ(Terms({"--mode=sync"}).mode, ConsistencyMode::kSync);
  EXPECT_EQ(Terms({"--mode=backup"}).mode, ConsistencyMode::kBackup);
  EXPECT_EQ(Terms({"--mode=ssp"}).mode, ConsistencyMode::kSsp);
  EXPECT_EQ(Terms({"--mode=async"}).mode, ConsistencyMode::kAsync);
  const Consistency bounded = Terms({"--mode=bounded", "--max-staleness=3", "--quorum=2"});
  EXPECT_EQ(bounded.mode, ConsistencyMode::kBounded);
  EXPECT_EQ(bounded.max_staleness, absl::make_optional(3u));
  EXPECT_EQ(bounded.quorum, 2u);
}

TEST(TrainingFlagsTest, GiveSspItsSlack) {
  EXPECT_EQ(Terms({"--mode=ssp", "--slack=0"}).slack, 0u);
  EXPECT_EQ(Terms({"--mode=ssp", "--slack=4"}).slack, 4u);
}

TEST(TrainingFlagsTest, ChooseTheReduction) {
  EXPECT_EQ(Terms({"--reduction=mean"}).reduction, Reduction::kMean);
  EXPECT_EQ(Terms({"--reduction=weighted-mean"}).reduction, Reduction::kWeightedMean);
  EXPECT_EQ(Terms({"--reduction=sum"}).reduction, Reduction::kSum);
}

TEST(TrainingFlagsTest, DiscountStaleGradientsAndLetReadsBeInconsistent) {
  EXPECT_TRUE(Terms({"--mode=ssp", "--discount-stale"}).discount_stale);
  const Consistency async = Terms({"--mode=async", "--inconsistent-reads", "--discount-stale"});
  EXPECT_TRUE(async.inconsistent_reads);
  EXPECT_TRUE(async.discount_stale);
}

TEST(TrainingFlagsTest, NameTheRulesForStaleGradients) {
  const Consistency gap = Terms({"--mode=async", "--staleness-rules=gap-aware"});
  EXPECT_EQ(gap.gap_aware, RuleChoice::kOn);
  EXPECT_EQ(gap.ordered_momentum, RuleChoice::kOff);
  const Consistency both = Terms({"--mode=ssp", "--staleness-rules=ordered-momentum,gap-aware"});
  EXPECT_EQ(both.gap_aware, RuleChoice::kOn);
  EXPECT_EQ(both.ordered_momentum, RuleChoice::kOn);
  EXPECT_EQ(Terms({"--mode=async", "--staleness-rules=none"}).gap_aware, RuleChoice::kOff);
  EXPECT_EQ(Terms({"--staleness-rules=none"}).ordered_momentum, RuleChoice::kOff);
}

TEST(TrainingFlagsTest, BoundTheWaitForAStep) {
  const Consistency waits = Terms({"--max-step-wait=2.5"});
  EXPECT_EQ(waits.max_step_wait, absl::Milliseconds(2500));
  EXPECT_EQ(waits.on_max_step_wait, StepWaitAction::kWait);
  EXPECT_EQ(Terms({"--max-step-wait=1", "--on-max-step-wait=proceed"}).on_max_step_wait,
            StepWaitAction::kProceed);
  EXPECT_EQ(Terms({"--max-step-wait=1", "--on-max-step-wait=evict"}).on_max_step_wait,
            StepWaitAction::kEvict);
}

TEST(TrainingFlagsTest, ChooseTheScheduleOfTheLearningRate) {
  const LearningRateSchedule warmup = Options({"--lr-warmup-steps=5"}).schedule;
  EXPECT_EQ(warmup.kind, ScheduleKind::kConstant);
  EXPECT_EQ(warmup.warmup_steps, 5u);
  const LearningRateSchedule step =
      Options({"--lr-schedule=step", "--lr-step-size=30", "--lr-gamma=0.5"}).schedule;
  EXPECT_EQ(step.kind, ScheduleKind::kStep);
  EXPECT_EQ(step.step_size, 30u);
  EXPECT_EQ(step.gamma, 0.5);
  EXPECT_EQ(Options({"--lr-schedule=step", "--lr-step-size=1"}).schedule.gamma, 0.1);
  const LearningRateSchedule cosine = Options({"--lr-schedule=cosine", "--lr-total-steps=100",
                                               "--lr-floor=0.25", "--lr-warmup-steps=10"})
                                          .schedule;
  EXPECT_EQ(cosine.kind, ScheduleKind::kCosine);
  EXPECT_EQ(cosine.total_steps, 100u);
  EXPECT_EQ(cosine.floor, 0.25);
  EXPECT_EQ(cosine.warmup_steps, 10u);
}

TEST(TrainingFlagsTest, ACosineEndsWithTraining) {
  const auto steps = [](Arguments arguments) {
    arguments.push_back("--lr-schedule=cosine");
    return Apply(arguments, 4, 100).value_or(ShardOptions()).schedule.total_steps;
  };
  EXPECT_EQ(steps({}), 25u);
  EXPECT_EQ(steps({"--mode=backup"}), 25u);  // of late gradients, too
  EXPECT_EQ(steps({"--mode=ssp"}), 100u);
  EXPECT_EQ(steps({"--mode=async"}), 100u);
  EXPECT_EQ(steps({"--mode=async", "--quorum=2"}), 50u);
  EXPECT_EQ(steps({"--lr-total-steps=7"}), 7u);
  EXPECT_EQ(steps({"--lr-warmup-steps=25"}), 26u);
}

TEST(TrainingFlagsTest, GuardAgainstHarmfulGradients) {
  const Guards guards =
      Options({"--skip-not-finite", "--clip-norm=1.5", "--max-push-norm=100"}).guards;
  EXPECT_TRUE(guards.skip_not_finite);
  EXPECT_EQ(guards.clip_norm, absl::make_optional(1.5));
  EXPECT_EQ(guards.max_push_norm, absl::make_optional(100.0));
}

TEST(TrainingFlagsTest, EndAJobThatDiverges) {
  EXPECT_EQ(Options({"--on-divergence=stop"}).guards.on_divergence, DivergenceAction::kStop);
  EXPECT_EQ(Options({"--on-divergence=stop-if-flat"}).guards.on_divergence,
            DivergenceAction::kStopIfFlat);
  EXPECT_EQ(Options({"--on-divergence=restore"}).guards.on_divergence, DivergenceAction::kRestore);
  EXPECT_EQ(Options({"--on-divergence=warn"}).guards.on_divergence, DivergenceAction::kWarn);
  EXPECT_THAT(Apply({"--on-divergence=restart"}),
              HasCode(absl::StatusCode::kInternal,
                      AllOf(HasSubstr("--on-divergence"), HasSubstr("stop"), HasSubstr("warn"))));
}

// ---- What is refused ----

struct Refusal {
  Arguments arguments;
  std::string sentence;
};

TEST(TrainingFlagsTest, AreRefusedWhereTheyContradictEachOther) {
  const Refusal refusals[] = {
      {{"--quorum=2"},
       "quorum is 2 in sync mode, which has none; drop it, or use backup, bounded or async mode"},
      {{"--mode=ssp", "--quorum=2"}, "quorum is 2 in ssp mode, which has none; drop it"},
      {{"--mode=async", "--quorum=0"}, "quorum is 0; expected at least 1"},
      {{"--workers=0"}, "--workers is 0, expected at least 1"},
      {{"--mode=bounded"},
       "--mode=bounded is given without --max-staleness, and its default is twice the number of "
       "workers, which a server that is started by hand does not know; give --workers=N or "
       "--max-staleness=STEPS"},
      {{"--mode=bounded", "--workers=2", "--quorum=0"}, "quorum is 0; expected at least 1"},
      {{"--max-staleness=3"},
       "max_staleness is 3 in sync mode; only bounded mode has such a bound"},
      {{"--mode=async", "--max-staleness=3"}, "max_staleness is 3 in async mode"},
      {{"--slack=1"}, "slack is 1 in sync mode; only ssp mode has it"},
      {{"--mode=async", "--slack=1"}, "slack is 1 in async mode; only ssp mode has it"},
      {{"--mode=backup", "--reduction-order=rank"},
       "the order of reduction is rank in backup mode; only in sync mode does every worker "
       "contribute"},
      {{"--mode=async", "--reduction-order=rank"}, "the order of reduction is rank in async mode"},
      {{"--discount-stale"},
       "discount_stale is set in sync mode; stale gradients never count there"},
      {{"--mode=backup", "--discount-stale"},
       "discount_stale is set in backup mode; stale gradients"},
      {{"--staleness-rules=gap-aware"},
       "a rule for stale gradients is on in sync mode; stale gradients never count there"},
      {{"--mode=backup", "--staleness-rules=ordered-momentum"},
       "a rule for stale gradients is on in backup mode"},
      {{"--mode=async", "--staleness-rules=gap"}, "the rules for stale gradients are \"gap\""},
      {{"--inconsistent-reads"},
       "inconsistent_reads is set in sync mode; only async mode has such reads"},
      {{"--mode=bounded", "--max-staleness=1", "--inconsistent-reads"},
       "inconsistent_reads is set in bounded mode; only async mode has such reads"},
      {{"--lr-schedule=step"}, "has step_size 0, expected the steps between two changes"},
      {{"--lr-schedule=step", "--lr-step-size=1", "--lr-gamma=0"},
       "has gamma 0, expected a finite number above 0"},
      {{"--lr-schedule=cosine"}, "has no end, because this program does not know"},
      {{"--lr-schedule=cosine", "--lr-total-steps=5", "--lr-warmup-steps=5"},
       "has total_steps 5, expected more than the 5 of the warm-up"},
      {{"--lr-schedule=cosine", "--lr-total-steps=5", "--lr-floor=1.5"},
       "has floor 1.5, expected 0 to 1"},
      {{"--clip-norm=0"}, "clip_norm is 0, expected a finite number above 0"},
      {{"--max-push-norm=-1"}, "max_push_norm is -1, expected a finite number above 0"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(Apply(refusal.arguments),
                HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(refusal.sentence)));
  }
}

TEST(TrainingFlagsTest, AreRefusedWithTheListOfWhatThereIs) {
  const Refusal refusals[] = {
      {{"--mode=fast"},
       "mode \"fast\" is unknown; expected one of sync, backup, bounded, ssp, async"},
      {{"--reduction=max"},
       "reduction \"max\" is unknown; expected one of mean, weighted-mean, sum"},
      {{"--reduction-order=any"},
       "order of reduction \"any\" is unknown; expected one of arrival, rank"},
      {{"--on-max-step-wait=evict"}, "--max-step-wait is not given; give both"},
      {{"--on-max-step-wait=pray"},
       "action \"pray\" is unknown; expected one of wait, proceed, evict"},
      {{"--lr-schedule=random"},
       "schedule \"random\" is unknown; expected constant, step or cosine"},
      {{"--lr-schedule=cosin"}, "expected constant, step or cosine; did you mean cosine?"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(Apply(refusal.arguments),
                IsError(Reason::kBadArgument, HasSubstr(refusal.sentence)));
  }
}

TEST(TrainingFlagsTest, AreRefusedAtOnceIfTheyAreNoNumbers) {
  for (const std::string flag :
       {"--workers", "--quorum", "--max-staleness", "--slack", "--max-step-wait", "--clip-norm",
        "--max-push-norm", "--lr-warmup-steps", "--lr-step-size", "--lr-gamma", "--lr-total-steps",
        "--lr-floor"}) {
    EXPECT_THAT(Apply({flag + "=many"}), HasCode(absl::StatusCode::kInternal, HasSubstr(flag)));
  }
  EXPECT_THAT(Apply({"--max-step-wait=0"}),
              HasCode(absl::StatusCode::kInternal, HasSubstr("--max-step-wait")));
  EXPECT_THAT(Apply({"--quorum=4294967296"}),
              HasCode(absl::StatusCode::kInternal, HasSubstr("--quorum")));
}

TEST(TrainingFlagsTest, ACosineEndsWithWhateverEndsTrainingFirst) {
  TrainingFlags end;
  end.pushes_of_each = 200;
  EXPECT_EQ(CosineSteps(end, {}, 3), 200u);
  EXPECT_EQ(CosineSteps(end, {"--mode=async"}, 3), 600u);
  end.pushes = 300;
  EXPECT_EQ(CosineSteps(end, {}, 3), 100u);
  end.last_step = 70;
  EXPECT_EQ(CosineSteps(end, {}, 3), 70u);
  EXPECT_EQ(CosineSteps(end, {"--lr-total-steps=50"}, 3), 50u);
}

}  // namespace
}  // namespace sluice
