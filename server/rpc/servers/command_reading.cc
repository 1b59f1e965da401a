// The part of command_messages.h that reads commands.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/field.h"
#include "common/wire/messages.h"
#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/number_fields.h"

namespace sluice {
namespace {

using Kind = StepOrder::Kind;

PushName NameOf(const v1::PushName& message) {
  return {SessionId(message.session()), Sequence(message.sequence()), message.attempt()};
}

PullName NameOf(const v1::PullName& message) {
  return {SessionId(message.session()), message.number()};
}

using Command = absl::StatusOr<ReplicaCommand>;

Command Read(const v1::OpenModel& message) {
  auto layout = FromProto(message.layout());
  if (!layout.ok()) return layout.status();
  auto optimizer = FromProto(message.optimizer());
  if (!optimizer.ok()) return optimizer.status();
  const absl::Status fits = CheckFits(*optimizer, *layout);
  if (!fits.ok()) return fits;
  return OpenModel{std::make_shared<const Layout>(*std::move(layout)), *std::move(optimizer)};
}

Command Read(const v1::LoadCheckpoint& message) {
  CheckpointSource source;
  source.job_id = message.job_id();
  source.incarnation = Incarnation(message.incarnation());
  source.step = Step(message.step());
  source.stripes.assign(message.stripes().begin(), message.stripes().end());
  source.slots.assign(message.slots().begin(), message.slots().end());
  source.optimizer_steps = message.optimizer_steps();
  LoadCheckpoint load = {std::move(source)};
  for (const v1::IncarnationBegin& begin : message.begins()) {
    load.begins[Incarnation(begin.incarnation())] = Step(begin.step());
  }
  return load;
}

Command Read(const v1::ReplayStep& message) {
  return ReplayStep{Step(message.step()), Incarnation(message.incarnation())};
}

Command Read(const v1::BeginJournal& message) {
  return BeginJournal{Incarnation(message.incarnation())};
}

Command Read(const v1::OpenSession& message) {
  if (message.role() != v1::WORKER && message.role() != v1::OBSERVER) {
    return BadField("role", absl::StrCat(static_cast<int>(message.role())), "WORKER or OBSERVER");
  }
  OpenSession open = {SessionId(message.session())};
  if (message.role() == v1::OBSERVER) open.role = SessionRole::kObserver;
  if (message.has_memory()) open.memory = FromProto(message.memory());
  return open;
}

Command Read(const v1::AdmitPush& message) {
  if (message.push() == 0) return BadField("push", "0", "a number from 1 on");
  return AdmitPush{PushId(message.push()), NameOf(message.name()), message.measures_norm(),
                   message.begins_sum()};
}

Command Read(const v1::DropPush& message) {
  return DropPush{PushId(message.push()), NameOf(message.name())};
}

Command Read(const v1::TakeParameters& message) {
  return TakeParameters{PushId(message.push()), Step(message.step())};
}

Command Read(const v1::AddPush& message) {
  absl::Status sound = CheckFinite("parameters", message.parameters());
  if (sound.ok()) sound = CheckFinite("statistics", message.statistics());
  if (sound.ok()) sound = CheckFinite("share", message.share());
  if (!sound.ok()) return sound;
  return AddPush{PushId(message.push()),
                 {message.parameters(), message.statistics(), message.share()},
                 message.last()};
}

absl::StatusOr<Kind> KindFromProto(v1::StepOrder::Kind kind) {
  switch (kind) {
    case v1::StepOrder::SAMPLE:
      return Kind::kSample;
    case v1::StepOrder::MEASURE_SUM:
      return Kind::kMeasureSum;
    case v1::StepOrder::PREPARE:
      return Kind::kPrepare;
    case v1::StepOrder::SCALE:
      return Kind::kScale;
    case v1::StepOrder::MAKE:
      return Kind::kMake;
    case v1::StepOrder::COPY:
      return Kind::kCopy;
    case v1::StepOrder::DIGEST:
      return Kind::kDigest;
    default:
      return BadField("kind", absl::StrCat(static_cast<int>(kind)), "a known kind of order");
  }
}

absl::Status ReadPrepare(const v1::StepOrder& message, StepOrder* order) {
  absl::Status sound = CheckPositive("divisor", message.divisor());
  if (sound.ok()) sound = CheckPositive("statistics_divisor", message.statistics_divisor());
  if (sound.ok()) sound = CheckNotNegative("lateness", message.lateness());
  if (sound.ok() && message.has_momentum_divisor()) {
    sound = CheckPositive("momentum_divisor", message.momentum_divisor());
    order->optimizer.momentum_divisor = message.momentum_divisor();
  }
  for (const double rate : message.learning_rates()) {
    if (sound.ok()) sound = CheckNotNegative("learning_rates", rate);
  }
  if (!sound.ok()) return sound;
  auto means = ReadRunningMeans(message.running_means());
  if (!means.ok()) return means.status();
  order->running_means = *std::move(means);
  order->optimizer.divisor = message.divisor();
  order->optimizer.learning_rates.assign(message.learning_rates().begin(),
                                         message.learning_rates().end());
  if (message.ordered_momentum()) {
    order->optimizer.ordered = OrderedMomentum{message.decays(), message.lateness()};
  }
  order->statistics_divisor = message.statistics_divisor();
  return absl::OkStatus();
}

Command Read(const v1::StepOrder& message) {
  const auto kind = KindFromProto(message.kind());
  if (!kind.ok()) return kind.status();
  StepOrder order;
  order.kind = *kind;
  order.inconsistent_reads = message.inconsistent_reads();
  absl::Status sound = absl::OkStatus();
  if (order.kind == Kind::kPrepare) sound = ReadPrepare(message, &order);
  if (order.kind == Kind::kMeasureSum) {
    sound = CheckPositive("divisor", message.divisor());
    order.optimizer.divisor = message.divisor();
  }
  if (sound.ok() && message.has_row_scale()) {
    sound = CheckPositive("row_scale", message.row_scale());
    order.row_scale = message.row_scale();
  }
  if (!sound.ok()) return sound;
  if (order.kind == Kind::kScale) {
    order.trust.rates.assign(message.trust_rates().begin(), message.trust_rates().end());
    order.trust.sure = message.trust_sure();
  }
  return order;
}

Command Read(const v1::PublishStep& /*message*/) { return PublishStep(); }

Command Read(const v1::ReleasePull& message) {
  if (message.pull().number() == 0) return BadField("number", "0", "a number from 1 on");
  return ReleasePull{NameOf(message.pull()), FromProto(message.header())};
}

Command Read(const v1::DropPull& message) { return DropPull{NameOf(message.pull())}; }

Command Read(const v1::EndSession& message) {
  EndSession command = {SessionId(message.session())};
  for (const uint64_t push : message.keep()) command.keep.push_back(PushId(push));
  return command;
}

Command Read(const v1::TakeCheckpoint& message) {
  return TakeCheckpoint{message.job_id(), Incarnation(message.incarnation()), Step(message.step())};
}

Command Read(const v1::KeepCheckpoints& message) {
  KeepCheckpoints command;
  for (const v1::CheckpointKey& key : message.keep()) {
    command.keep.push_back({Incarnation(key.incarnation()), Step(key.step())});
  }
  return command;
}

Command Read(const v1::SummarizeTensor& message) {
  if (message.number() == 0) return BadField("number", "0", "a number from 1 on");
  return SummarizeTensor{message.number(), {message.tensor(), message.first(), message.count()}};
}

Command Read(const v1::EndJob& message) {
  if (message.exit_code() >= 0 && message.exit_code() <= 255) return EndJob{message.exit_code()};
  return BadField("exit_code", absl::StrCat(message.exit_code()), "0 to 255");
}

}  // namespace

absl::StatusOr<ReplicaCommand> FromProto(const v1::SequencerMessage& message) {
  switch (message.message_case()) {
    case v1::SequencerMessage::kOpenModel:
      return Read(message.open_model());
    case v1::SequencerMessage::kLoadCheckpoint:
      return Read(message.load_checkpoint());
    case v1::SequencerMessage::kReplayStep:
      return Read(message.replay_step());
    case v1::SequencerMessage::kBeginJournal:
      return Read(message.begin_journal());
    case v1::SequencerMessage::kOpenSession:
      return Read(message.open_session());
    case v1::SequencerMessage::kAdmitPush:
      return Read(message.admit_push());
    case v1::SequencerMessage::kDropPush:
      return Read(message.drop_push());
    case v1::SequencerMessage::kTakeParameters:
      return Read(message.take_parameters());
    case v1::SequencerMessage::kAddPush:
      return Read(message.add_push());
    case v1::SequencerMessage::kStepOrder:
      return Read(message.step_order());
    case v1::SequencerMessage::kPublishStep:
      return Read(message.publish_step());
    case v1::SequencerMessage::kReleasePull:
      return Read(message.release_pull());
    case v1::SequencerMessage::kDropPull:
      return Read(message.drop_pull());
    case v1::SequencerMessage::kEndSession:
      return Read(message.end_session());
    case v1::SequencerMessage::kTakeCheckpoint:
      return Read(message.take_checkpoint());
    case v1::SequencerMessage::kKeepCheckpoints:
      return Read(message.keep_checkpoints());
    case v1::SequencerMessage::kSummarizeTensor:
      return Read(message.summarize_tensor());
    case v1::SequencerMessage::kEndJob:
      return Read(message.end_job());
    default:
      return BadField("message", absl::StrCat(static_cast<int>(message.message_case())),
                      "a command");
  }
}

}  // namespace sluice
