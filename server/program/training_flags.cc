#include "server/program/training_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "server/policy/mode_options.h"
#include "server/program/optional_flag.h"

namespace sluice {
namespace {

const std::map<std::string, DivergenceAction> kDivergenceActions = {
    {"warn", DivergenceAction::kWarn},
    {"stop", DivergenceAction::kStop},
    {"stop-if-flat", DivergenceAction::kStopIfFlat},
    {"restore", DivergenceAction::kRestore}};

void AddConsistencyFlags(CLI::App& group, TrainingFlags& flags) {
  group
      .add_option(
          "--mode", flags.mode,
          "sync (all workers, one gradient each), backup (the first QUORUM of them), bounded "
          "(gradients at most MAX-STALENESS steps old), ssp (nobody more than SLACK pushes "
          "ahead of the slowest) or async")
      ->capture_default_str();
  AddOptional(group, "--workers", flags.workers,
              "workers that the first step waits for (default: those that mpirun launched; without "
              "mpirun the quorum in backup, else 1)");
  AddOptional(group, "--quorum", flags.quorum,
              "backup, bounded, async: gradients per step (default: in backup the workers less 5 % "
              "of them, and at least one less; else 1)");
  AddOptional(group, "--max-staleness", flags.max_staleness,
              "bounded: drop gradients of a larger staleness, in steps (default: 2 x workers / "
              "quorum)");
  AddOptional(group, "--slack", flags.slack,
              absl::StrCat("ssp: how many pushes a worker may be ahead of the slowest (default: ",
                           kDefaultSlack, ")"));
  group
      .add_option("--reduction", flags.reduction,
                  "mean, weighted-mean (by samples) or sum of a step's gradients")
      ->capture_default_str();
  AddOptional(group, "--reduction-order", flags.reduction_order,
              "arrival or, in sync, rank: then two runs end with the same bits (default: rank in "
              "sync, else arrival)");
  group.add_flag("--discount-stale", flags.discount_stale,
                 "bounded, ssp, async: multiply gradients by 1 / (1 + staleness)");
  group
      .add_option("--staleness-rules", flags.staleness_rules,
                  "bounded, ssp, async: what to do about stale gradients: auto, none, or some of "
                  "gap-aware, ordered-momentum and divided-momentum, separated by commas")
      ->capture_default_str();
  group.add_flag("--inconsistent-reads", flags.inconsistent_reads,
                 "async: let workers read parameters while they are written");
  AddOptional(group, "--max-step-wait", flags.max_step_wait,
              "seconds for which a worker may delay a step (default: no limit)")
      ->check(SecondsFrom(kMicrosecond));
  group
      .add_option("--on-max-step-wait", flags.on_max_step_wait,
                  "what to do after --max-step-wait: wait, proceed (make the step without the late "
                  "workers) or evict (those workers)")
      ->capture_default_str();
}

void AddScheduleFlags(CLI::App& group, TrainingFlags& flags) {
  LearningRateSchedule& schedule = flags.schedule;
  group
      .add_option("--lr-schedule", flags.lr_schedule,
                  "factor of the learning rate over time: constant, step or cosine")
      ->capture_default_str();
  group
      .add_option("--lr-warmup-steps", schedule.warmup_steps,
                  "the first N steps, in which the learning rate rises linearly, from 1/N of it")
      ->capture_default_str();
  group.add_option("--lr-step-size", schedule.step_size,
                   "step: number of steps between two changes");
  group.add_option("--lr-gamma", schedule.gamma, "step: factor of each change")
      ->capture_default_str();
  group.add_option("--lr-total-steps", schedule.total_steps,
                   "cosine: steps until the end of the curve, including those of the warm-up "
                   "(default: until the end of training, if the program that serves knows it)");
  group.add_option("--lr-floor", schedule.floor, "cosine: factor at the end of the curve")
      ->capture_default_str();
}

void AddGuardFlags(CLI::App& group, TrainingFlags& flags) {
  group.add_flag("--skip-not-finite", flags.guards.skip_not_finite,
                 "leave out and count gradients with NaN or infinity, instead of refusing them");
  AddOptional(group, "--clip-norm", flags.guards.clip_norm,
              "scale the reduced gradient down to this norm");
  AddOptional(group, "--max-push-norm", flags.guards.max_push_norm,
              "refuse gradients of a larger norm");
  group
      .add_option(
          "--on-divergence", flags.guards.on_divergence,
          "what to do when the loss rises, or gradients or parameters explode: warn (in the "
          "log, the closing table and the Inspector), stop (end the job too, with exit code "
          "7, and save no last checkpoint), stop-if-flat (also when the loss stays as it "
          "was at the start for 1,000 rounds), or restore (go back to a checkpoint from before, "
          "with half the learning rate; needs --checkpoint-dir); where losses may rise or stay, as "
          "in "
          "adversarial, contrastive or reinforcement learning, only warn")
      ->transform(CLI::CheckedTransformer(kDivergenceActions))
      ->default_str("warn");
}

// How many workers the first step waits for.
uint32_t WorkersOf(const TrainingFlags& flags, ConsistencyMode mode, uint32_t launched) {
  if (flags.workers.has_value()) return *flags.workers;
  if (launched > 0) return launched;
  return mode == ConsistencyMode::kBackup ? flags.quorum.value_or(1) : 1;
}

// The options of the mode, given or by default, for as many workers.
void SetModeOptions(const TrainingFlags& flags, uint32_t workers, Consistency* consistency) {
  const ConsistencyMode mode = consistency->mode;
  consistency->quorum = flags.quorum.value_or(DefaultQuorum(mode, workers));
  consistency->max_staleness = flags.max_staleness;
  if (mode == ConsistencyMode::kBounded && !flags.max_staleness.has_value()) {
    consistency->max_staleness =
        DefaultMaxStaleness(workers, std::max(consistency->quorum, uint32_t{1}));
  }
  consistency->slack = flags.slack.value_or(mode == ConsistencyMode::kSsp ? kDefaultSlack : 0);
}

// A cosine whose end nobody gave ends with training.
absl::Status EndCosine(const TrainingFlags& flags, uint32_t workers, ShardOptions* options) {
  LearningRateSchedule& schedule = options->schedule;
  if (schedule.kind != ScheduleKind::kCosine || schedule.total_steps > 0) return absl::OkStatus();
  const uint64_t per_step = PushesPerStep(options->consistency, workers);
  uint64_t steps = std::numeric_limits<uint64_t>::max();
  if (flags.pushes > 0) steps = flags.pushes / per_step;
  if (flags.pushes_of_each > 0) steps = std::min(steps, flags.pushes_of_each * workers / per_step);
  if (flags.last_step > 0) steps = std::min(steps, flags.last_step);
  if (steps == std::numeric_limits<uint64_t>::max()) {
    return absl::InvalidArgumentError(
        "--lr-schedule=cosine has no end, because this program does not know when training ends; "
        "give --lr-total-steps=STEPS");
  }
  schedule.total_steps = std::max(steps, schedule.warmup_steps + 1);
  return absl::OkStatus();
}

// A bound that is made for one worker would drop most gradients of several.
absl::Status CheckBoundIsKnown(const TrainingFlags& flags, ConsistencyMode mode,
                               uint32_t launched) {
  const bool bounded = mode == ConsistencyMode::kBounded && !flags.max_staleness.has_value();
  if (!bounded || flags.workers.has_value() || launched > 0) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   "--mode=bounded is given without --max-staleness, and its default is twice the "
                   "number of workers, which a server that is started by hand does not know; give "
                   "--workers=N or --max-staleness=STEPS");
}

}  // namespace

void AddTrainingFlags(CLI::App& app, TrainingFlags& flags) {
  AddConsistencyFlags(*app.add_option_group("Consistency", "Which gradients make a step"), flags);
  AddScheduleFlags(*app.add_option_group("Schedule", "How the learning rate changes"), flags);
  AddGuardFlags(*app.add_option_group("Guards", "How the server treats harmful gradients"), flags);
}

absl::Status ApplyTrainingFlags(const TrainingFlags& flags, uint32_t launched_workers,
                                ShardOptions* options) {
  Consistency& consistency = options->consistency;
  options->schedule = flags.schedule;
  absl::Status status = ParseConsistencyMode(flags.mode, &consistency.mode);
  status.Update(ParseReduction(flags.reduction, &consistency.reduction));
  if (flags.reduction_order.has_value()) {
    status.Update(ParseReductionOrder(*flags.reduction_order, &consistency.order));
  } else if (consistency.mode == ConsistencyMode::kSync) {
    consistency.order = ReductionOrder::kRank;
  }
  status.Update(ParseStalenessRules(flags.staleness_rules, &consistency));
  status.Update(ParseStepWaitAction(flags.on_max_step_wait, &consistency.on_max_step_wait));
  status.Update(ParseScheduleKind(flags.lr_schedule, &options->schedule.kind));
  if (!status.ok()) return status;
  options->expected_workers = WorkersOf(flags, consistency.mode, launched_workers);
  if (options->expected_workers == 0) {
    return absl::InvalidArgumentError("--workers is 0, expected at least 1");
  }
  status.Update(CheckBoundIsKnown(flags, consistency.mode, launched_workers));
  SetModeOptions(flags, options->expected_workers, &consistency);
  status.Update(EndCosine(flags, options->expected_workers, options));
  consistency.discount_stale = flags.discount_stale;
  consistency.inconsistent_reads = flags.inconsistent_reads;
  if (flags.max_step_wait.has_value()) {
    consistency.max_step_wait = absl::Seconds(*flags.max_step_wait);
  }
  options->guards = flags.guards;
  if (!flags.max_step_wait.has_value() && consistency.on_max_step_wait != StepWaitAction::kWait) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("--on-max-step-wait is ", flags.on_max_step_wait,
                                  ", but --max-step-wait is not given; give both"));
  }
  status.Update(consistency.Validate());
  status.Update(options->schedule.Validate());
  status.Update(options->guards.Validate());
  return status;
}

}  // namespace sluice
