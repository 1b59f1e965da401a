#include "server/rpc/servers/command_messages.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/field.h"
#include "common/wire/messages.h"
#include "common/wire/words.h"
#include "server/rpc/servers/number_fields.h"

namespace sluice {
namespace {

using Kind = StepOrder::Kind;

constexpr Word<Kind, v1::StepOrder::Kind> kOrderKinds[] = {
    {Kind::kSample, v1::StepOrder::SAMPLE},   {Kind::kMeasureSum, v1::StepOrder::MEASURE_SUM},
    {Kind::kPrepare, v1::StepOrder::PREPARE}, {Kind::kScale, v1::StepOrder::SCALE},
    {Kind::kMake, v1::StepOrder::MAKE},       {Kind::kCopy, v1::StepOrder::COPY},
    {Kind::kDigest, v1::StepOrder::DIGEST}};

void Put(const PushName& name, v1::PushName* message) {
  message->set_session(name.session.value());
  message->set_sequence(name.sequence.value());
  message->set_attempt(name.attempt);
}

void Put(const PullName& name, v1::PullName* message) {
  message->set_session(name.session.value());
  message->set_number(name.number);
}

void Put(const OpenModel& command, v1::SequencerMessage* message) {
  v1::OpenModel& model = *message->mutable_open_model();
  *model.mutable_layout() = ToProto(*command.layout);
  *model.mutable_optimizer() = ToProto(command.optimizer);
}

void Put(const LoadCheckpoint& command, v1::SequencerMessage* message) {
  v1::LoadCheckpoint& load = *message->mutable_load_checkpoint();
  load.set_job_id(command.source.job_id);
  load.set_incarnation(command.source.incarnation.value());
  load.set_step(command.source.step.value());
  load.mutable_stripes()->Add(command.source.stripes.begin(), command.source.stripes.end());
  for (const std::string& slot : command.source.slots) load.add_slots(slot);
  load.set_optimizer_steps(command.source.optimizer_steps);
  for (const auto& [incarnation, step] : command.begins) {
    v1::IncarnationBegin& begin = *load.add_begins();
    begin.set_incarnation(incarnation.value());
    begin.set_step(step.value());
  }
}

void Put(const ReplayStep& command, v1::SequencerMessage* message) {
  message->mutable_replay_step()->set_step(command.step.value());
  message->mutable_replay_step()->set_incarnation(command.incarnation.value());
}

void Put(const BeginJournal& command, v1::SequencerMessage* message) {
  message->mutable_begin_journal()->set_incarnation(command.incarnation.value());
}

void Put(const OpenSession& command, v1::SequencerMessage* message) {
  message->mutable_open_session()->set_session(command.session.value());
  message->mutable_open_session()->set_role(command.role == SessionRole::kWorker ? v1::WORKER
                                                                                 : v1::OBSERVER);
  if (command.memory.has_value()) {
    *message->mutable_open_session()->mutable_memory() = ToProto(*command.memory);
  }
}

void Put(const AdmitPush& command, v1::SequencerMessage* message) {
  message->mutable_admit_push()->set_push(command.push.value());
  Put(command.name, message->mutable_admit_push()->mutable_name());
  message->mutable_admit_push()->set_measures_norm(command.measures_norm);
  message->mutable_admit_push()->set_begins_sum(command.begins_sum);
}

void Put(const DropPush& command, v1::SequencerMessage* message) {
  message->mutable_drop_push()->set_push(command.push.value());
  Put(command.name, message->mutable_drop_push()->mutable_name());
}

void Put(const TakeParameters& command, v1::SequencerMessage* message) {
  message->mutable_take_parameters()->set_push(command.push.value());
  message->mutable_take_parameters()->set_step(command.step.value());
}

void Put(const AddPush& command, v1::SequencerMessage* message) {
  v1::AddPush& add = *message->mutable_add_push();
  add.set_push(command.push.value());
  add.set_parameters(command.weight.parameters);
  add.set_statistics(command.weight.statistics);
  add.set_last(command.last);
  add.set_share(command.weight.share);
}

void Put(const StepOrder& command, v1::SequencerMessage* message) {
  v1::StepOrder& order = *message->mutable_step_order();
  order.set_kind(ToTheirs(kOrderKinds, command.kind));
  order.set_inconsistent_reads(command.inconsistent_reads);
  if (command.row_scale.has_value()) order.set_row_scale(*command.row_scale);
  if (command.kind == Kind::kPrepare) {
    order.set_divisor(command.optimizer.divisor);
    for (const double rate : command.optimizer.learning_rates) order.add_learning_rates(rate);
    order.set_ordered_momentum(command.optimizer.ordered.has_value());
    const OrderedMomentum ordered = command.optimizer.ordered.value_or(OrderedMomentum());
    order.set_decays(ordered.decays);
    order.set_lateness(ordered.lateness);
    const double divisor = command.optimizer.momentum_divisor;
    if (divisor != 1) order.set_momentum_divisor(divisor);
    order.set_statistics_divisor(command.statistics_divisor);
    PutRunningMeans(command.running_means, order.mutable_running_means());
    PutChanged(command.optimizer.changed, order.mutable_changed_options());
  } else if (command.kind == Kind::kMeasureSum) {
    order.set_divisor(command.optimizer.divisor);
  } else if (command.kind == Kind::kScale) {
    for (const float rate : command.trust.rates) order.add_trust_rates(rate);
    order.set_trust_sure(command.trust.sure);
  }
}

void Put(const PublishStep& /*command*/, v1::SequencerMessage* message) {
  message->mutable_publish_step();
}

void Put(const ReleasePull& command, v1::SequencerMessage* message) {
  Put(command.pull, message->mutable_release_pull()->mutable_pull());
  *message->mutable_release_pull()->mutable_header() = ToProto(command.header);
}

void Put(const DropPull& command, v1::SequencerMessage* message) {
  Put(command.pull, message->mutable_drop_pull()->mutable_pull());
}

void Put(const EndSession& command, v1::SequencerMessage* message) {
  message->mutable_end_session()->set_session(command.session.value());
  for (const PushId push : command.keep) message->mutable_end_session()->add_keep(push.value());
}

void Put(const TakeCheckpoint& command, v1::SequencerMessage* message) {
  message->mutable_take_checkpoint()->set_job_id(command.job_id);
  message->mutable_take_checkpoint()->set_incarnation(command.incarnation.value());
  message->mutable_take_checkpoint()->set_step(command.step.value());
}

void Put(const KeepCheckpoints& command, v1::SequencerMessage* message) {
  v1::KeepCheckpoints& keeps = *message->mutable_keep_checkpoints();
  for (const CheckpointKey& key : command.keep) {
    v1::CheckpointKey& one = *keeps.add_keep();
    one.set_incarnation(key.incarnation.value());
    one.set_step(key.step.value());
  }
}

void Put(const SummarizeTensor& command, v1::SequencerMessage* message) {
  v1::SummarizeTensor& summarize = *message->mutable_summarize_tensor();
  summarize.set_number(command.number);
  summarize.set_tensor(command.query.tensor);
  summarize.set_first(command.query.first);
  summarize.set_count(static_cast<uint32_t>(command.query.count));
}

void Put(const EndJob& command, v1::SequencerMessage* message) {
  message->mutable_end_job()->set_exit_code(command.exit_code);
}

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
  auto changed = ReadChanged(message.changed_options());
  if (!changed.ok()) return changed.status();
  order->optimizer.changed = *std::move(changed);
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
  const Kind* const kind = ToOurs(kOrderKinds, message.kind());
  if (kind == nullptr) {
    return BadField("kind", absl::StrCat(static_cast<int>(message.kind())),
                    "a known kind of order");
  }
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

v1::SequencerMessage ToProto(const ReplicaCommand& command) {
  v1::SequencerMessage message;
  std::visit([&message](const auto& one) { Put(one, &message); }, command);
  return message;
}

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
