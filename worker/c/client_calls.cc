#include "worker/c/client_calls.h"

#include <utility>

#include "worker/worker_context.h"

namespace sluice {

absl::Status ClientCalls::Join() {
  auto taken = job_.context().TakePart();
  if (!taken.ok()) return taken.status();
  const bool returns = client_ != nullptr;
  absl::Status joined =
      returns ? client_->Join({}, model_.parameters) : Join(SessionRole::kWorker, &client_);
  if (model_.has_one_buffer() && returns) complete_ = joined.ok();
  if (joined.ok()) {
    taken_ = *std::move(taken);
    part_ = Part::kJoined;
    round_.step = client_->step();
  }
  return joined;
}

absl::Status ClientCalls::Join(SessionRole role, std::unique_ptr<ParameterClient>* client) {
  auto connection = job_.context().Connect();
  if (!connection.ok()) return connection.status();
  auto joining = std::make_unique<ParameterClient>(
      *std::move(connection), job_.context().push_encoding(), job_.context().pull_encoding(),
      RealClock(), job_.context().if_options_differ());
  if (role == SessionRole::kWorker) {
    joining->CacheRows(job_.context().row_cache());
    joining->KeepRunningMeans(model_.means);
    joining->KeepConstants(model_.constants);
  }
  JoinRequest request = job_.context().Identity(role);
  request.layout = model_.layout;
  request.optimizer = model_.optimizer;
  request.memory = model_.gradient.shared;
  if (model_.restore != nullptr) {
    const bool steps = role == SessionRole::kWorker;
    joining->RestoreBy(model_.restore, steps ? model_.model : ParameterClient::Model());
  }
  absl::Status joined = joining->Join(request, model_.parameters);
  if (role == SessionRole::kObserver) NoteComplete(joined, *joining);
  if (joined.ok()) *client = std::move(joining);
  return joined;
}

// Called after each call of the observer. If that has failed before it wrote anything, incomplete
// parameters are still incomplete.
void ClientCalls::NoteComplete(const absl::Status& called, const ParameterClient& observer) {
  complete_ = called.ok() || (complete_ && observer.held().complete());
  observed_ = observed_ || called.ok();
}

absl::Status ClientCalls::Push(RowGradients rows, uint32_t samples, absl::optional<float> loss) {
  slots_ = {};
  if (!rows.empty()) client_->SetRows(std::move(rows));
  const SharedFloats gradient = {model_.gradient.floats, model_.gradient.owner};
  auto report = client_->PushPull(gradient, samples, loss, model_.parameters);
  if (report.ok()) round_ = *report;
  if (model_.has_one_buffer()) complete_ = report.ok();
  return report.status();
}

absl::Status ClientCalls::PullSlots() {
  slots_ = {};
  auto slots = client_->PullSlots();
  if (slots.ok()) slots_ = *std::move(slots);
  return slots.status();
}

ParameterClient* ClientCalls::row_client() const {
  if (part_ == Part::kJoined) return client_.get();
  return final_step_.has_value() ? observer_.get() : nullptr;
}

// What was prefetched for other ids is given up.
absl::Status ClientCalls::PullRows(const RowIds& rows, absl::Span<float> to) {
  auto prefetched = prefetched_.extract(rows.table);
  if (rows.ids.empty()) return absl::OkStatus();
  if (!prefetched.empty() && prefetched.mapped().rows.front().ids == rows.ids) {
    return row_client()->FinishRows(std::move(prefetched.mapped()), to);
  }
  return row_client()->PullRows({rows}, to);
}

void ClientCalls::PrefetchRows(const RowIds& rows) {
  prefetched_.erase(rows.table);
  if (!rows.ids.empty()) prefetched_.emplace(rows.table, row_client()->StartRows({rows}));
}

absl::Status ClientCalls::Leave() {
  client_->GiveUpEarly();
  prefetched_.clear();
  part_ = Part::kLeft;
  taken_ = nullptr;
  return client_->Leave({});
}

absl::Status ClientCalls::AwaitEnd() {
  ends_ = true;
  // Observes before it leaves, because a server without sessions would end.
  absl::Status status = Join(SessionRole::kObserver, &observer_);
  if (status.ok()) status = Leave();
  if (status.ok()) {
    status = observer_->AwaitEnd(model_.parameters);
    NoteComplete(status, *observer_);
  }
  if (status.ok()) final_step_ = round_.step = observer_->step();
  return status;
}

absl::Status ClientCalls::Report(const Results& results) {
  prefetched_.clear();
  const std::unique_ptr<ParameterClient> observer = std::move(observer_);
  return observer->Leave({results});
}

// Errors do not matter: the server also notices that the connection ends.
void ClientCalls::GiveUp(const std::string& why) {
  if (client_ == nullptr) return;
  client_->GiveUpEarly();
  prefetched_.clear();
  if (part_ == Part::kJoined)
    client_->Leave({{}, why}, ParameterClient::IfLost::kGivesUp).IgnoreError();
  if (observer_ != nullptr) observer_->Leave({}, ParameterClient::IfLost::kGivesUp).IgnoreError();
}

sluice_status ClientCalls::status() const {
  const Welcome& welcome = client_->welcome();
  const Step step = final_step_.value_or(client_->step());
  return {welcome.index,
          welcome.workers,
          welcome.pushes_before,
          step.value(),
          welcome.schedule.FactorAt(step),
          complete_ && (observed_ || client_->held().complete()) ? 1 : 0,
          client_->constants_pulled(),
          client_->held().step_to_take() ? 1 : 0};
}

}  // namespace sluice
