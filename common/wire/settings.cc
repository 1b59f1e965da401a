#include "common/wire/settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/words.h"

namespace sluice {
namespace {

// The longest duration that a message can hold: 10,000 years.
const absl::Duration kLongestDuration = absl::Seconds(int64_t{315'576'000'000});

constexpr Word<ConsistencyMode, v1::ConsistencyMode> kModes[] = {
    {ConsistencyMode::kSync, v1::SYNC},       {ConsistencyMode::kBackup, v1::BACKUP},
    {ConsistencyMode::kBounded, v1::BOUNDED}, {ConsistencyMode::kSsp, v1::SSP},
    {ConsistencyMode::kAsync, v1::ASYNC},
};
constexpr Word<Reduction, v1::Reduction> kReductions[] = {
    {Reduction::kMean, v1::MEAN},
    {Reduction::kMean, v1::REDUCTION_UNSPECIFIED},
    {Reduction::kWeightedMean, v1::WEIGHTED_MEAN},
    {Reduction::kSum, v1::SUM},
};
constexpr Word<ReductionOrder, v1::ReductionOrder> kOrders[] = {
    {ReductionOrder::kArrival, v1::ARRIVAL},
    {ReductionOrder::kArrival, v1::REDUCTION_ORDER_UNSPECIFIED},
    {ReductionOrder::kRank, v1::RANK},
};
constexpr Word<StepWaitAction, v1::StepWaitAction> kActions[] = {
    {StepWaitAction::kWait, v1::WAIT},
    {StepWaitAction::kWait, v1::STEP_WAIT_ACTION_UNSPECIFIED},
    {StepWaitAction::kProceed, v1::PROCEED},
    {StepWaitAction::kEvict, v1::EVICT},
};
constexpr Word<RuleChoice, v1::RuleChoice> kChoices[] = {
    {RuleChoice::kAuto, v1::RULE_CHOICE_UNSPECIFIED},
    {RuleChoice::kAuto, v1::AUTO},
    {RuleChoice::kOn, v1::ON},
    {RuleChoice::kOff, v1::OFF},
};
constexpr Word<ScheduleKind, v1::LearningRateSchedule::Kind> kSchedules[] = {
    {ScheduleKind::kConstant, v1::LearningRateSchedule::CONSTANT},
    {ScheduleKind::kConstant, v1::LearningRateSchedule::KIND_UNSPECIFIED},
    {ScheduleKind::kStep, v1::LearningRateSchedule::STEP},
    {ScheduleKind::kCosine, v1::LearningRateSchedule::COSINE},
};

template <typename Ours, typename Theirs, size_t kCount>
absl::Status Decode(absl::string_view field, const Word<Ours, Theirs> (&words)[kCount],
                    Theirs theirs, Ours* ours) {
  const Ours* const known = ToOurs(words, theirs);
  if (known != nullptr) {
    *ours = *known;
    return absl::OkStatus();
  }
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field ", field, " is ", static_cast<int>(theirs),
                                ", which this program does not know; is the other side newer "
                                "than this one?"));
}

}  // namespace

absl::StatusOr<Consistency> FromProto(const v1::Consistency& message) {
  Consistency consistency;
  const absl::Status enums[] = {
      Decode("consistency.mode", kModes, message.mode(), &consistency.mode),
      Decode("consistency.reduction", kReductions, message.reduction(), &consistency.reduction),
      Decode("consistency.order", kOrders, message.order(), &consistency.order),
      Decode("consistency.on_max_step_wait", kActions, message.on_max_step_wait(),
             &consistency.on_max_step_wait),
      Decode("consistency.gap_aware", kChoices, message.gap_aware(), &consistency.gap_aware),
      Decode("consistency.ordered_momentum", kChoices, message.ordered_momentum(),
             &consistency.ordered_momentum),
      Decode("consistency.divided_momentum", kChoices, message.divided_momentum(),
             &consistency.divided_momentum)};
  for (const absl::Status& status : enums) {
    if (!status.ok()) return status;
  }
  // A version that did not know the rule has written this: it was asked for those rules only.
  const bool before = message.divided_momentum() == v1::RULE_CHOICE_UNSPECIFIED;
  const bool automatic = consistency.gap_aware == RuleChoice::kAuto &&
                         consistency.ordered_momentum == RuleChoice::kAuto;
  if (before && !automatic) consistency.divided_momentum = RuleChoice::kOff;
  if (message.quorum() != 0) consistency.quorum = message.quorum();
  if (message.has_max_staleness()) consistency.max_staleness = message.max_staleness();
  consistency.slack = message.slack();
  consistency.discount_stale = message.discount_stale();
  consistency.inconsistent_reads = message.inconsistent_reads();
  if (message.has_max_step_wait()) consistency.max_step_wait = FromProto(message.max_step_wait());
  const absl::Status status = consistency.Validate();
  if (!status.ok()) return status;
  return consistency;
}

v1::Consistency ToProto(const Consistency& consistency) {
  v1::Consistency message;
  message.set_mode(ToTheirs(kModes, consistency.mode));
  if (consistency.HasQuorum()) message.set_quorum(consistency.quorum);
  if (consistency.max_staleness.has_value()) message.set_max_staleness(*consistency.max_staleness);
  message.set_slack(consistency.slack);
  message.set_reduction(ToTheirs(kReductions, consistency.reduction));
  message.set_order(ToTheirs(kOrders, consistency.order));
  message.set_discount_stale(consistency.discount_stale);
  message.set_gap_aware(ToTheirs(kChoices, consistency.gap_aware));
  message.set_ordered_momentum(ToTheirs(kChoices, consistency.ordered_momentum));
  message.set_divided_momentum(ToTheirs(kChoices, consistency.divided_momentum));
  message.set_inconsistent_reads(consistency.inconsistent_reads);
  if (consistency.max_step_wait != absl::InfiniteDuration()) {
    *message.mutable_max_step_wait() = ToProto(consistency.max_step_wait);
    message.set_on_max_step_wait(ToTheirs(kActions, consistency.on_max_step_wait));
  }
  return message;
}

v1::LearningRateSchedule ToProto(const LearningRateSchedule& schedule) {
  v1::LearningRateSchedule message;
  message.set_kind(ToTheirs(kSchedules, schedule.kind));
  message.set_warmup_steps(schedule.warmup_steps);
  if (schedule.kind == ScheduleKind::kStep) {
    message.set_step_size(schedule.step_size);
    message.set_gamma(schedule.gamma);
  } else if (schedule.kind == ScheduleKind::kCosine) {
    message.set_total_steps(schedule.total_steps);
    message.set_floor(schedule.floor);
  }
  return message;
}

absl::StatusOr<LearningRateSchedule> FromProto(const v1::LearningRateSchedule& message) {
  LearningRateSchedule schedule;
  const absl::Status known = Decode("schedule.kind", kSchedules, message.kind(), &schedule.kind);
  if (!known.ok()) return known;
  schedule.warmup_steps = message.warmup_steps();
  if (schedule.kind == ScheduleKind::kStep) {
    schedule.step_size = message.step_size();
    schedule.gamma = message.gamma();
  } else if (schedule.kind == ScheduleKind::kCosine) {
    schedule.total_steps = message.total_steps();
    schedule.floor = message.floor();
  }
  const absl::Status valid = schedule.Validate();
  if (!valid.ok()) return valid;
  return schedule;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration message;
  const absl::Duration within = std::clamp(duration, -kLongestDuration, kLongestDuration);
  const absl::Duration cut = absl::Trunc(within, absl::Microseconds(1));
  message.set_seconds(absl::ToInt64Seconds(cut));
  message.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(cut - absl::Seconds(message.seconds()))));
  return message;
}

absl::Duration FromProto(const google::protobuf::Duration& message) {
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  const google::protobuf::Duration since = ToProto(time - absl::UnixEpoch());
  google::protobuf::Timestamp message;
  message.set_seconds(since.seconds());
  message.set_nanos(since.nanos());
  return message;
}

absl::Time FromProto(const google::protobuf::Timestamp& message) {
  return absl::UnixEpoch() + absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

}  // namespace sluice
