#include "server/rpc/servers/command_messages.h"

#include <string>
#include <variant>

#include "common/wire/messages.h"

namespace sluice {
namespace {

using Kind = StepOrder::Kind;

void Put(const PushName& name, v1::PushName* message) {
  message->set_session(name.session.value());
  message->set_sequence(name.sequence.value());
  message->set_attempt(name.attempt);
}

void Put(const PullName& name, v1::PullName* message) {
  message->set_session(name.session.value());
  message->set_number(name.number);
}

// ---- Commands ----

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

v1::StepOrder::Kind KindToProto(Kind kind) {
  switch (kind) {
    case Kind::kSample:
      return v1::StepOrder::SAMPLE;
    case Kind::kMeasureSum:
      return v1::StepOrder::MEASURE_SUM;
    case Kind::kPrepare:
      return v1::StepOrder::PREPARE;
    case Kind::kScale:
      return v1::StepOrder::SCALE;
    case Kind::kMake:
      return v1::StepOrder::MAKE;
    case Kind::kDigest:
      return v1::StepOrder::DIGEST;
    case Kind::kCopy:
      break;
  }
  return v1::StepOrder::COPY;
}

void Put(const StepOrder& command, v1::SequencerMessage* message) {
  v1::StepOrder& order = *message->mutable_step_order();
  order.set_kind(KindToProto(command.kind));
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

}  // namespace

v1::SequencerMessage ToProto(const ReplicaCommand& command) {
  v1::SequencerMessage message;
  std::visit([&message](const auto& one) { Put(one, &message); }, command);
  return message;
}

}  // namespace sluice
