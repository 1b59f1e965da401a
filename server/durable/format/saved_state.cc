#include "server/durable/format/saved_state.h"

#include <glog/logging.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/reading/checkpoint_head.h"
#include "common/wire/messages.h"
#include "common/wire/optimizer.h"
#include "sluice/v1/durable.pb.h"

namespace sluice {
namespace {

v1::SavedWorker EncodeWorker(const SessionRecord& record) {
  v1::SavedWorker worker;
  worker.set_worker(record.worker);
  worker.set_process_nonce(record.process_nonce.value());
  worker.set_index(record.index);
  worker.set_alive(record.alive());
  worker.set_left(record.presence == Presence::kLeft);
  worker.set_barred(record.banned);
  worker.set_last_sequence(record.last_sequence.value());
  for (const auto& kept : record.answers) {
    v1::SavedAnswer& answer = *worker.add_answers();
    answer.set_sequence(kept.first.value());
    *answer.mutable_answer() = ToProto(kept.second.outcome);
  }
  worker.set_clock(record.clock);
  worker.set_accepted(record.accepted);
  worker.set_stale(record.stale);
  worker.set_skipped(record.skipped);
  worker.set_pushes_before(record.pushes_before);
  worker.set_pushes_in_earlier_launches(record.pushes_in_earlier_launches);
  for (const ProcessNonce process : record.replaced) worker.add_replaced(process.value());
  return worker;
}

// Sums of them fit in 64 bits.
absl::Status CheckPushes(absl::string_view field, uint64_t pushes) {
  if (pushes <= kMostPushes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(field, " has ", pushes, ", expected at most ", kMostPushes));
}

absl::StatusOr<SessionRecord> DecodeWorker(const v1::SavedWorker& worker) {
  SessionRecord record;
  record.worker = worker.worker();
  record.process_nonce = ProcessNonce(worker.process_nonce());
  record.index = worker.index();
  record.presence = worker.alive()  ? Presence::kLost
                    : worker.left() ? Presence::kLeft
                                    : Presence::kEvicted;
  record.banned = worker.barred();
  record.last_sequence = Sequence(worker.last_sequence());
  for (const v1::SavedAnswer& kept : worker.answers()) {
    auto outcome = FromProto(kept.answer());
    if (!outcome.ok()) return outcome.status();
    record.answers[Sequence(kept.sequence())].outcome = *outcome;
  }
  record.clock = worker.clock();
  record.accepted = worker.accepted();
  record.stale = worker.stale();
  record.skipped = worker.skipped();
  record.pushes_before = worker.pushes_before();
  record.pushes_in_earlier_launches = worker.pushes_in_earlier_launches();
  for (const uint64_t pushes : {record.accepted, record.stale, record.skipped, record.pushes_before,
                                record.pushes_in_earlier_launches}) {
    const absl::Status sound = CheckPushes("a worker's record", pushes);
    if (!sound.ok()) return sound;
  }
  for (const uint64_t process : worker.replaced()) record.replaced.emplace_back(process);
  return record;
}

v1::SavedLosses EncodeLosses(const LossMemory& losses) {
  v1::SavedLosses saved;
  saved.set_very_first(losses.very_first);
  saved.set_first(losses.first);
  saved.set_margin(losses.margin);
  saved.set_slack(losses.slack);
  saved.set_smoothed(losses.smoothed);
  saved.set_best(losses.best);
  saved.set_trained(losses.trained);
  return saved;
}

absl::StatusOr<LossMemory> DecodeLosses(const v1::SavedLosses& saved) {
  const LossMemory losses = {saved.very_first(), saved.first(), saved.margin(), saved.slack(),
                             saved.smoothed(),   saved.best(),  saved.trained()};
  for (const double value : {losses.very_first, losses.first, losses.margin, losses.slack,
                             losses.smoothed, losses.best}) {
    if (!std::isfinite(value)) {
      return absl::DataLossError(
          absl::StrCat("in losses there is ", value, ", expected finite numbers"));
    }
  }
  if (losses.margin < 0 || losses.slack < 0) {
    return absl::DataLossError(absl::StrCat("losses.margin is ", losses.margin,
                                            " and losses.slack ", losses.slack,
                                            ", expected at least 0"));
  }
  return losses;
}

absl::Status ReadLosses(const v1::SavedState& state, ShardCheckpoint* checkpoint) {
  if (state.has_suspect_since()) checkpoint->suspect_since = Step(state.suspect_since());
  if (!state.has_losses()) return absl::OkStatus();
  const auto losses = DecodeLosses(state.losses());
  if (!losses.ok()) return losses.status();
  checkpoint->losses = *losses;
  return absl::OkStatus();
}

absl::Status ReadTerms(const v1::SavedState& state, ShardCheckpoint* checkpoint) {
  auto optimizer = FromProto(state.optimizer());
  if (!optimizer.ok()) return optimizer.status();
  checkpoint->optimizer = *std::move(optimizer);
  const absl::Status fits = CheckFits(checkpoint->optimizer, *checkpoint->layout);
  if (!fits.ok()) return fits;
  const auto consistency = FromProto(state.consistency());
  if (!consistency.ok()) return consistency.status();
  checkpoint->consistency = *consistency;
  const auto own_consistency = FromProto(state.own_consistency());
  if (!own_consistency.ok()) return own_consistency.status();
  checkpoint->own_consistency = *own_consistency;
  if (state.has_learning_rate()) checkpoint->learning_rate = state.learning_rate();
  auto changed = ReadChanged(state.changed_options());
  if (!changed.ok()) return changed.status();
  checkpoint->changed = *std::move(changed);
  return CheckChanged(checkpoint->optimizer, checkpoint->changed);
}

absl::Status ReadWorkers(const v1::SavedState& state, ShardCheckpoint* checkpoint) {
  for (const v1::SavedWorker& worker : state.workers()) {
    auto record = DecodeWorker(worker);
    if (!record.ok()) return record.status();
    checkpoint->workers.push_back(*std::move(record));
  }
  checkpoint->forgot_workers = state.forgot_workers();
  constexpr uint32_t kMostWorkers = 1 << 20;  // each takes memory when the next launch begins
  if (state.launched_workers() > kMostWorkers) {
    return absl::DataLossError(absl::StrCat("launched_workers is ", state.launched_workers(),
                                            ", expected at most ", kMostWorkers));
  }
  checkpoint->launched_workers = state.launched_workers();
  for (const v1::EarlierLaunch& launch : state.earlier_launches()) {
    for (const uint64_t pushes : launch.pushes()) {
      const absl::Status sound = CheckPushes("earlier_launches", pushes);
      if (!sound.ok()) return sound;
    }
    checkpoint->earlier_launches.emplace_back(launch.pushes().begin(), launch.pushes().end());
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeSavedState(const ShardCheckpoint& checkpoint,
                             const std::vector<uint64_t>& stripes,
                             absl::Span<const RowFile> row_files) {
  v1::SavedState state;
  state.set_format(kSavedStateFormat);
  state.set_job_id(checkpoint.job_id);
  state.set_incarnation(checkpoint.incarnations.current().value());
  state.set_step(checkpoint.step.value());
  for (const auto& ancestor : checkpoint.incarnations.ancestors()) {
    v1::SavedAncestor& saved = *state.add_ancestors();
    saved.set_incarnation(ancestor.first.value());
    saved.set_step(ancestor.second.value());
  }
  *state.mutable_layout() = ToProto(*checkpoint.layout);
  *state.mutable_optimizer() = ToProto(checkpoint.optimizer);
  state.set_optimizer_steps(checkpoint.optimizer_steps);
  for (const SlotCheckpoint& slot : checkpoint.slots) state.add_slots(slot.name);
  *state.mutable_consistency() = ToProto(checkpoint.consistency);
  *state.mutable_own_consistency() = ToProto(checkpoint.own_consistency);
  if (checkpoint.learning_rate.has_value()) state.set_learning_rate(*checkpoint.learning_rate);
  *state.mutable_schedule() = ToProto(checkpoint.schedule);
  PutChanged(checkpoint.changed, state.mutable_changed_options());
  for (const SessionRecord& record : checkpoint.workers)
    *state.add_workers() = EncodeWorker(record);
  state.set_forgot_workers(checkpoint.forgot_workers);
  state.set_launched_workers(checkpoint.launched_workers);
  for (const auto& pushes : checkpoint.earlier_launches) {
    state.add_earlier_launches()->mutable_pushes()->Add(pushes.begin(), pushes.end());
  }
  state.set_ended(checkpoint.ended);
  state.set_finished(checkpoint.finished);
  for (const std::string& observer : checkpoint.observers) state.add_observers(observer);
  if (checkpoint.losses.has_value()) *state.mutable_losses() = EncodeLosses(*checkpoint.losses);
  if (checkpoint.suspect_since.has_value()) {
    state.set_suspect_since(checkpoint.suspect_since->value());
  }
  state.mutable_stripes()->Add(stripes.begin(), stripes.end());
  for (const RowFile& file : row_files) {
    v1::SavedRowFile& saved = *state.add_row_files();
    saved.set_step(file.step.value());
    saved.set_checksum(file.checksum);
  }
  state.set_row_steps(checkpoint.row_steps);
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(state, &json);
  CHECK(printed.ok()) << printed.ToString();
  return json;
}

absl::StatusOr<ShardCheckpoint> DecodeSavedState(absl::string_view json) {
  const auto head = DecodeHead(json);
  if (!head.ok()) return head.status();
  return DecodeSavedState(*head);
}

absl::StatusOr<ShardCheckpoint> DecodeSavedState(const CheckpointHead& head) {
  const v1::SavedState& state = head.state;
  const CheckpointSource& source = head.contents.source;
  ShardCheckpoint checkpoint;
  checkpoint.job_id = source.job_id;
  checkpoint.step = source.step;
  checkpoint.incarnations = IncarnationHistory(source.incarnation);
  for (const v1::SavedAncestor& ancestor : state.ancestors()) {
    checkpoint.incarnations.AddAncestor(Incarnation(ancestor.incarnation()), Step(ancestor.step()));
  }
  checkpoint.layout = head.contents.layout;
  absl::Status read = ReadTerms(state, &checkpoint);
  if (read.ok()) read = ReadWorkers(state, &checkpoint);
  if (read.ok()) read = ReadLosses(state, &checkpoint);
  if (!read.ok())
    return absl::DataLossError(absl::StrCat("its state is not valid: ", read.message()));
  checkpoint.optimizer_steps = source.optimizer_steps;
  checkpoint.ended = state.ended();
  checkpoint.finished = state.finished();
  checkpoint.observers.assign(state.observers().begin(), state.observers().end());
  checkpoint.stripes = source.stripes;
  checkpoint.row_files = head.contents.row_files;
  checkpoint.row_steps = head.contents.row_steps;
  for (const std::string& slot : source.slots) checkpoint.slots.push_back({slot, FloatBuffer()});
  return checkpoint;
}

std::string EncodeSavedStep(const StepRecord& record, absl::Span<const TableCount> tables) {
  v1::SavedStep step;
  step.set_step(record.step.value());
  step.set_incarnation(record.incarnation.value());
  step.set_gradients(record.gradients);
  step.set_samples(record.samples);
  const StepTerms& terms = record.terms;
  *step.mutable_consistency() = ToProto(terms.consistency);
  step.mutable_learning_rates()->Add(terms.learning_rates.begin(), terms.learning_rates.end());
  if (terms.clip_norm.has_value()) step.set_clip_norm(*terms.clip_norm);
  if (terms.ordered.has_value()) {
    step.mutable_ordered_momentum()->set_decays(terms.ordered->decays);
    step.mutable_ordered_momentum()->set_lateness(terms.ordered->lateness);
  }
  if (terms.momentum_divisor != 1) step.set_momentum_divisor(terms.momentum_divisor);
  PutRunningMeans(terms.running_means, step.mutable_running_means());
  PutChanged(terms.changed, step.mutable_changed_options());
  if (record.learning_rate.has_value()) step.set_learning_rate(*record.learning_rate);
  step.set_forgot_workers(record.forgot_workers);
  step.set_checksum(record.checksum);
  for (const SessionRecord& worker : record.contributors) {
    *step.add_contributors() = EncodeWorker(worker);
  }
  for (const TableCount& table : tables) {
    v1::SavedRowCount& count = *step.add_tables();
    count.set_table(table.table);
    count.set_rows(table.rows);
  }
  return step.SerializeAsString();
}

absl::StatusOr<StepRecord> DecodeSavedStep(absl::string_view bytes,
                                           std::vector<TableCount>* tables) {
  v1::SavedStep step;
  if (!step.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("is not a valid SavedStep");
  }
  StepRecord record;
  record.step = Step(step.step());
  record.incarnation = Incarnation(step.incarnation());
  record.gradients = step.gradients();
  record.samples = step.samples();
  const auto consistency = FromProto(step.consistency());
  if (!consistency.ok()) return consistency.status();
  record.terms.consistency = *consistency;
  record.terms.learning_rates.assign(step.learning_rates().begin(), step.learning_rates().end());
  if (step.has_clip_norm()) record.terms.clip_norm = step.clip_norm();
  if (step.has_ordered_momentum()) {
    record.terms.ordered = {step.ordered_momentum().decays(), step.ordered_momentum().lateness()};
  }
  if (step.has_momentum_divisor()) record.terms.momentum_divisor = step.momentum_divisor();
  auto means = ReadRunningMeans(step.running_means());
  if (!means.ok()) return means.status();
  record.terms.running_means = *std::move(means);
  auto changed = ReadChanged(step.changed_options());
  if (!changed.ok()) return changed.status();
  record.terms.changed = *std::move(changed);
  if (step.has_learning_rate()) record.learning_rate = step.learning_rate();
  record.forgot_workers = step.forgot_workers();
  record.checksum = step.checksum();
  for (const v1::SavedWorker& worker : step.contributors()) {
    auto contributor = DecodeWorker(worker);
    if (!contributor.ok()) return contributor.status();
    record.contributors.push_back(*std::move(contributor));
  }
  for (const v1::SavedRowCount& count : step.tables()) {
    if (tables != nullptr) tables->push_back({count.table(), count.rows()});
  }
  return record;
}

}  // namespace sluice
