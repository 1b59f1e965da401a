#include "worker/c/client.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/c/model.h"
#include "worker/worker_context.h"

using sluice::Job;
using sluice::Layout;
using sluice::OptimizerConfig;
using sluice::ParameterClient;
using sluice::SessionRole;
using sluice::SharedFloats;

sluice_client::sluice_client(const Job& job, Layout layout, OptimizerConfig optimizer,
                             absl::Span<float> parameters, const sluice_buffer& gradient)
    : job_(job),
      layout_(std::move(layout)),
      optimizer_(std::move(optimizer)),
      parameters_(parameters),
      gradient_(gradient),
      early_coverage_(layout_.size()),
      calls_(std::make_unique<sluice::CallThread>()) {}

sluice_client::~sluice_client() {
  calls_ = nullptr;  // waits for its tasks
  if (client_ == nullptr) return;
  client_->GiveUpEarly();
  prefetched_.clear();
  // Errors do not matter: the server also notices that the connection ends.
  if (failure_.empty()) failure_ = "its client was freed before it had left the job";
  if (part_ == Part::kJoined) client_->LeaveAtOnce({{}, failure_}).IgnoreError();
  if (observer_ != nullptr) observer_->LeaveAtOnce({}).IgnoreError();
}

absl::Status sluice_client::CheckJoined(absl::string_view call) const {
  absl::Status idle = calls_->CheckIdle(call);
  if (!idle.ok() || part_ == Part::kJoined) return idle;
  return absl::FailedPreconditionError(
      absl::StrCat(call, part_ == Part::kNew ? " was called before sluice_join()"
                                             : " was called after this worker has left"));
}

absl::optional<absl::Status> sluice_client::Wait(absl::Duration longest, sluice_round* round) {
  const bool ends = calls_->under_way();  // else the thread may send parts now
  const absl::optional<absl::Status> result = calls_->Wait(longest);
  if (!result.has_value()) return absl::nullopt;
  if (ends && client_ != nullptr) NoteStatus();
  if (ends) failure_ = std::string(result->message());
  if (result->ok() && round != nullptr) {
    *round = {round_.step.value(), static_cast<int32_t>(round_.disposition), round_.staleness};
  }
  return result;
}

void sluice_client::NoteStatus() {
  const sluice::Welcome& welcome = client_->welcome();
  const sluice::Step step = final_step_.value_or(client_->step());
  status_ = {welcome.index,
             welcome.workers,
             welcome.pushes_before,
             step.value(),
             welcome.schedule.FactorAt(step),
             complete_ && (observed_ || client_->parameters_complete()) ? 1 : 0,
             client_->constants_pulled()};
  earlier_launches_.clear();
  for (const std::vector<uint64_t>& launch : welcome.earlier_launches) {
    earlier_launches_.push_back(launch.size());
    earlier_launches_.insert(earlier_launches_.end(), launch.begin(), launch.end());
  }
}

absl::Status sluice_client::SetRestore(ParameterClient::Restore restore) {
  absl::Status idle = calls_->CheckIdle("sluice_set_restore()");
  if (!idle.ok()) return idle;
  if (part_ != Part::kNew || restore_ != nullptr) {
    return absl::FailedPreconditionError(
        "sluice_set_restore() may be called once, before sluice_join()");
  }
  if (!has_one_buffer()) {
    return absl::FailedPreconditionError(
        "sluice_set_restore() is for parameters that are the floats of the gradient's buffer, and "
        "these are in other memory; do not call it");
  }
  restore_ = std::move(restore);
  return absl::OkStatus();
}

absl::Status sluice_client::BeginJoin() {
  const absl::Status idle = calls_->CheckIdle("sluice_join()");
  if (!idle.ok()) return idle;
  if (part_ != Part::kNew) {
    return absl::FailedPreconditionError("sluice_join() was called twice");
  }
  const absl::Status has_model = sluice::CheckNotEmpty("sluice_set_tables()", layout_);
  if (!has_model.ok()) return has_model;
  if (has_one_buffer() && restore_ == nullptr) {  // it would offer a gradient as parameters
    return absl::FailedPreconditionError(
        "the parameters are the floats of the gradient's buffer; call sluice_set_restore() before "
        "sluice_join(), or give sluice_client_create() other memory for them");
  }
  calls_->Begin([this] {
    absl::Status joined = Join(SessionRole::kWorker, &client_);
    if (joined.ok()) {
      part_ = Part::kJoined;
      round_.step = client_->step();
    }
    return joined;
  });
  return absl::OkStatus();
}

absl::Status sluice_client::Join(SessionRole role, std::unique_ptr<ParameterClient>* client) {
  auto connection = job_.context().Connect();
  if (!connection.ok()) return connection.status();
  auto joining = std::make_unique<ParameterClient>(
      *std::move(connection), job_.context().push_encoding(), job_.context().pull_encoding());
  if (role == SessionRole::kWorker) {
    joining->CacheRows(job_.context().row_cache());
    joining->KeepRunningMeans(kept_means_);
    joining->KeepConstants(constants_);
  }
  sluice::JoinRequest request = job_.context().Identity(role);
  request.layout = layout_;
  request.optimizer = optimizer_;
  request.memory = gradient_.shared;
  if (restore_ != nullptr) joining->RestoreBy(restore_);
  absl::Status joined = joining->Join(request, parameters_);
  if (role == SessionRole::kObserver) NoteComplete(joined, *joining);
  if (joined.ok()) *client = std::move(joining);
  return joined;
}

// Called after each call of the observer. If that has failed before it wrote anything, incomplete
// parameters are still incomplete.
void sluice_client::NoteComplete(const absl::Status& called, const ParameterClient& observer) {
  complete_ = called.ok() || (complete_ && observer.parameters_complete());
  observed_ = observed_ || called.ok();
}

absl::Status sluice_client::BeginPush(uint32_t samples, absl::optional<float> loss) {
  absl::Status ready = CheckJoined("sluice_push()");
  if (!ready.ok()) return ready;
  const SharedFloats gradient = {gradient_.floats, gradient_.owner};
  calls_->Drain();  // what is sent early
  const absl::optional<uint64_t> changed = sent_early_.FirstChanged(gradient.values);
  const sluice::RunningMeans means = std::exchange(running_means_, {});
  const absl::Status not_sent = CheckNotSentEarly(means);
  ForgetEarly();
  if (!not_sent.ok()) {
    client_->GiveUpEarly();
    return not_sent;
  }
  if (changed.has_value()) {
    client_->GiveUpEarly();
    return absl::FailedPreconditionError(
        absl::StrCat(layout_.ElementName(*changed),
                     " of the gradient has changed after it was sent early; change it before that, "
                     "or send nothing "
                     "early (sluice_send_early(), or overlap in Python)"));
  }
  client_->SetRunningMeans(means, gradient_.floats);
  calls_->Begin([this, gradient, rows = TakeRowGradients(), samples, loss] {
    if (!rows.empty()) client_->SetRows(rows);
    auto report = client_->PushPull(gradient, samples, loss, parameters_);
    if (report.ok()) round_ = *report;
    if (has_one_buffer()) complete_ = report.ok();
    return report.status();
  });
  return absl::OkStatus();
}

absl::Status sluice_client::BeginLeave() {
  absl::Status ready = CheckJoined("sluice_leave()");
  if (!ready.ok()) return ready;
  calls_->Begin([this] { return Leave(); });
  return absl::OkStatus();
}

absl::Status sluice_client::Leave() {
  client_->GiveUpEarly();
  prefetched_.clear();
  part_ = Part::kLeft;
  return client_->Leave({});
}

absl::Status sluice_client::BeginAwaitEnd() {
  absl::Status ready = CheckJoined("sluice_await_end()");
  if (!ready.ok()) return ready;
  calls_->Begin([this] { return AwaitEnd(); });
  return absl::OkStatus();
}

absl::Status sluice_client::AwaitEnd() {
  // Observes before it leaves, because a server without sessions would end.
  absl::Status status = Join(SessionRole::kObserver, &observer_);
  if (status.ok()) status = Leave();
  if (status.ok()) {
    status = observer_->AwaitEnd(parameters_);
    NoteComplete(status, *observer_);
  }
  if (status.ok()) final_step_ = round_.step = observer_->step();
  return status;
}

absl::Status sluice_client::BeginReport(sluice::Results results) {
  const absl::Status idle = calls_->CheckIdle("sluice_report()");
  if (!idle.ok()) return idle;
  if (observer_ == nullptr) {
    return absl::FailedPreconditionError(
        "sluice_report() may be called once, after sluice_await_end()");
  }
  calls_->Begin([this, results = std::move(results)] {
    const std::unique_ptr<ParameterClient> observer = std::move(observer_);
    return observer->Leave({results});
  });
  return absl::OkStatus();
}

absl::Status sluice_client::SendEarly(uint64_t offset, uint64_t count) {
  absl::Status ready = CheckJoined("sluice_send_early()");
  if (!ready.ok()) return ready;
  if (offset > layout_.size() || count > layout_.size() - offset) {
    return absl::InvalidArgumentError(absl::StrCat("sluice_send_early() got ", count,
                                                   " elements from ", offset, " on, the model has ",
                                                   layout_.size()));
  }
  if (count == 0) return absl::OkStatus();
  const absl::Status fresh = early_coverage_.Add(offset, count);
  if (!fresh.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sluice_send_early() sends each element once: ", fresh.message(),
                     "; sluice_give_up_early() drops what was sent"));
  }
  const SharedFloats part = {gradient_.floats.subspan(offset, count), gradient_.owner};
  // The fingerprint is of what the caller sees now, not of what the background finds later.
  sent_early_.Note(offset, part.values);
  calls_->Run([this, offset, part] { client_->SendEarly(offset, part); });
  return absl::OkStatus();
}

void sluice_client::ForgetEarly() {
  sent_early_.Clear();
  early_coverage_ = sluice::Coverage(layout_.size());
}

absl::Status sluice_client::GiveUpEarly() {
  absl::Status ready = CheckJoined("sluice_give_up_early()");
  if (!ready.ok()) return ready;
  calls_->Drain();
  client_->GiveUpEarly();
  ForgetEarly();
  return absl::OkStatus();
}

absl::Status sluice_client::Attach(sluice::Attachment attachment) {
  absl::Status ready = CheckJoined("sluice_attach()");
  if (!ready.ok()) return ready;
  calls_->Drain();
  return client_->Attach(std::move(attachment));
}

// ---- sluice.h ----

namespace sluice {
namespace {

absl::StatusOr<sluice_client*> MakeClient(const Job& job, const sluice_model& model,
                                          const sluice_optimizer& optimizer, float* parameters,
                                          const sluice_buffer& gradient) {
  auto layout = LayoutOf(model);
  if (!layout.ok()) return layout.status();
  auto config = ConfigOf(optimizer);
  if (!config.ok()) return config.status();
  const absl::Status fits = CheckFits(*config, *layout);
  if (!fits.ok()) return fits;
  if (gradient.floats.size() != layout->size()) {
    return absl::InvalidArgumentError(absl::StrCat("the buffer of the gradient has ",
                                                   gradient.floats.size(),
                                                   " elements, the model has ", layout->size()));
  }
  const absl::Span<float> values(parameters, layout->size());
  return new sluice_client(job, *std::move(layout), *std::move(config), values, gradient);
}

}  // namespace
}  // namespace sluice

sluice_code sluice_client_create(sluice_job* job, const sluice_model* model,
                                 const sluice_optimizer* optimizer, float* parameters,
                                 sluice_buffer* gradient, sluice_client** client) {
  return sluice::Guarded([&] {
    const auto made = sluice::MakeClient(job->job, *model, *optimizer, parameters, *gradient);
    if (made.ok()) *client = *made;
    return made.status();
  });
}

void sluice_client_free(sluice_client* client) { delete client; }

void sluice_set_failure(sluice_client* client, const char* why) {
  if (why != nullptr && *why != '\0') client->SetFailure(why);
}

sluice_code sluice_set_restore(sluice_client* client, sluice_restore restore, void* context) {
  if (restore == nullptr) {
    return sluice::CodeOf(absl::InvalidArgumentError(
        "the function of sluice_set_restore() is NULL, expected one that writes the parameters"));
  }
  return sluice::CodeOf(client->SetRestore([restore, context](absl::Span<float> parameters) {
    const int32_t failed = restore(context, parameters.data());
    if (failed == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the server has no parameters, and the program could not restore its own: ",
                     "the function of sluice_set_restore() has returned ", failed));
  }));
}

sluice_code sluice_join(sluice_client* client) { return sluice::CodeOf(client->BeginJoin()); }

sluice_code sluice_push(sluice_client* client, uint32_t samples, const float* loss) {
  absl::optional<float> told;
  if (loss != nullptr) told = *loss;
  return sluice::CodeOf(client->BeginPush(samples, told));
}

sluice_code sluice_leave(sluice_client* client) { return sluice::CodeOf(client->BeginLeave()); }

sluice_code sluice_await_end(sluice_client* client) {
  return sluice::CodeOf(client->BeginAwaitEnd());
}

sluice_code sluice_report(sluice_client* client, const char* const* names, const double* values,
                          size_t count) {
  sluice::Results results;
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return sluice::CodeOf(sluice::NoNameError("a result"));
    results[names[i]] = values[i];
  }
  return sluice::CodeOf(client->BeginReport(std::move(results)));
}

sluice_code sluice_wait(sluice_client* client, double seconds, sluice_round* round) {
  const absl::optional<absl::Status> result = client->Wait(sluice::DurationOf(seconds), round);
  return result.has_value() ? sluice::CodeOf(*result) : static_cast<sluice_code>(SLUICE_PENDING);
}

sluice_code sluice_send_early(sluice_client* client, uint64_t offset, uint64_t count) {
  return sluice::CodeOf(client->SendEarly(offset, count));
}

sluice_code sluice_give_up_early(sluice_client* client) {
  return sluice::CodeOf(client->GiveUpEarly());
}

sluice_code sluice_attach(sluice_client* client, const char* type, const void* data, size_t size) {
  if (type == nullptr) return sluice::CodeOf(sluice::NoNameError("an attachment"));
  if (size > sluice::kMostAttachedBytes) {  // refused in the same words, without a copy
    return sluice::CodeOf(client->Attach({type, std::string(sluice::kMostAttachedBytes + 1, 0)}));
  }
  return sluice::CodeOf(client->Attach({type, std::string(static_cast<const char*>(data), size)}));
}

sluice_status sluice_client_status(const sluice_client* client) { return client->status(); }

uint64_t sluice_earlier_launches(const sluice_client* client, uint64_t* numbers,
                                 uint64_t capacity) {
  const std::vector<uint64_t>& all = client->earlier_launches();
  std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), numbers);
  return all.size();
}
