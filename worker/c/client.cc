#include "worker/c/client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/c/model.h"

using sluice::ClientCalls;
using sluice::ClientModel;
using sluice::Job;
using sluice::ParameterClient;
using sluice::RowId;
using sluice::RowIds;
using sluice::RunningMeans;
using sluice::SharedFloats;

sluice_client::sluice_client(const Job& job, sluice::ClientModel model)
    : model_(std::move(model)),
      calls_(job, model_),
      thread_(std::make_unique<sluice::CallThread>()) {}

sluice_client::~sluice_client() {
  thread_ = nullptr;  // waits for its tasks
  if (failure_.empty()) failure_ = "its client was freed before it had left the job";
  calls_.GiveUp(failure_);
}

absl::Status sluice_client::CheckJoined(absl::string_view call) const {
  absl::Status idle = thread_->CheckIdle(call);
  if (!idle.ok() || calls_.part() == ClientCalls::Part::kJoined) return idle;
  return absl::FailedPreconditionError(absl::StrCat(
      call, calls_.part() == ClientCalls::Part::kNew ? " was called before sluice_join()"
                                                     : " was called after this worker has left"));
}

absl::optional<absl::Status> sluice_client::Wait(absl::Duration longest, sluice_round* round) {
  const bool ends = thread_->under_way();  // else the thread may send parts now
  const absl::optional<absl::Status> result = thread_->Wait(longest);
  if (!result.has_value()) return absl::nullopt;
  if (ends && calls_.client() != nullptr) NoteStatus();
  if (ends) failure_ = std::string(result->message());
  if (result->ok() && round != nullptr) {
    const sluice::RoundReport& report = calls_.round();
    *round = {report.step.value(), static_cast<int32_t>(report.disposition), report.staleness};
  }
  return result;
}

void sluice_client::NoteStatus() {
  status_ = calls_.status();
  earlier_launches_.clear();
  for (const std::vector<uint64_t>& launch : calls_.client()->welcome().earlier_launches) {
    earlier_launches_.push_back(launch.size());
    earlier_launches_.insert(earlier_launches_.end(), launch.begin(), launch.end());
  }
}

absl::Status sluice_client::SetRestore(ParameterClient::Restore restore) {
  absl::Status idle = thread_->CheckIdle("sluice_set_restore()");
  if (!idle.ok()) return idle;
  if (calls_.part() != ClientCalls::Part::kNew || model_.restore != nullptr) {
    return absl::FailedPreconditionError(
        "sluice_set_restore() may be called once, before sluice_join()");
  }
  if (!model_.has_one_buffer()) {
    return absl::FailedPreconditionError(
        "sluice_set_restore() is for parameters that are the floats of the gradient's buffer, and "
        "these are in other memory; do not call it");
  }
  model_.restore = std::move(restore);
  return absl::OkStatus();
}

absl::Status sluice_client::Configure(
    absl::string_view call, absl::FunctionRef<absl::Status(sluice::ClientModel&)> change) {
  absl::Status idle = thread_->CheckIdle(call);
  if (!idle.ok()) return idle;
  if (calls_.part() == ClientCalls::Part::kNew) return change(model_);
  return absl::FailedPreconditionError(
      absl::StrCat(call, " may be called before sluice_join() only"));
}

absl::Status sluice_client::BeginJoin() {
  const absl::Status idle = thread_->CheckIdle("sluice_join()");
  if (!idle.ok()) return idle;
  if (calls_.part() == ClientCalls::Part::kJoined || calls_.ends()) {
    return absl::FailedPreconditionError(calls_.ends()
                                             ? "sluice_join() was called after sluice_await_end()"
                                             : "sluice_join() was called twice");
  }
  const absl::Status has_model = sluice::CheckNotEmpty("sluice_set_tables()", model_.layout);
  if (!has_model.ok()) return has_model;
  if (model_.steps_itself() &&
      (model_.model.load == nullptr || (model_.layout.size() > 0 && !model_.has_one_buffer()))) {
    return absl::FailedPreconditionError(
        "with the optimizer mean_gradient the program has the model; call sluice_set_model() "
        "before "
        "sluice_join(), and give sluice_client_create() the floats of the gradient's buffer as "
        "parameters");
  }
  if (model_.has_one_buffer() &&
      model_.restore == nullptr) {  // it would offer a gradient as parameters
    return absl::FailedPreconditionError(
        "the parameters are the floats of the gradient's buffer; call sluice_set_restore() before "
        "sluice_join(), or give sluice_client_create() other memory for them");
  }
  thread_->Begin([this] { return calls_.Join(); });
  return absl::OkStatus();
}

absl::Status sluice_client::BeginPush(uint32_t samples, absl::optional<float> loss) {
  absl::Status ready = CheckJoined("sluice_push()");
  if (!ready.ok()) return ready;
  thread_->Drain();  // what is sent early
  const auto options = next_.TakeOptions();
  if (options.has_value()) ready = calls_.client()->SetOptions(*options);
  if (!ready.ok()) return ready;
  const absl::Status sound = next_.CheckEarly(model_.gradient.floats);
  const RunningMeans means = next_.TakeMeans();
  next_.ForgetEarly();
  if (!sound.ok()) {
    calls_.client()->GiveUpEarly();
    return sound;
  }
  calls_.client()->SetRunningMeans(means, model_.gradient.floats);
  thread_->Begin(
      [this, rows = next_.TakeRows(), samples, loss] { return calls_.Push(rows, samples, loss); });
  return absl::OkStatus();
}

absl::Status sluice_client::Begin(absl::string_view call, absl::Status (ClientCalls::*what)()) {
  absl::Status ready = CheckJoined(call);
  if (!ready.ok()) return ready;
  thread_->Begin([this, what] { return (calls_.*what)(); });
  return absl::OkStatus();
}

size_t sluice_client::Slots(absl::Span<sluice_slot> slots, uint64_t* optimizer_steps) const {
  const sluice::PulledSlots& pulled = calls_.slots();
  const auto* const values = reinterpret_cast<const float*>(pulled.bytes.data());
  for (size_t i = 0; i < std::min(slots.size(), pulled.names.size()); ++i) {
    slots[i] = {pulled.names[i].c_str(), values + i * model_.layout.size()};
  }
  if (optimizer_steps != nullptr) *optimizer_steps = pulled.optimizer_steps;
  return pulled.names.size();
}

absl::Status sluice_client::BeginReport(sluice::Results results) {
  const absl::Status idle = thread_->CheckIdle("sluice_report()");
  if (!idle.ok()) return idle;
  if (!calls_.observes()) {
    return absl::FailedPreconditionError(
        "sluice_report() may be called once, after sluice_await_end()");
  }
  thread_->Begin([this, results = std::move(results)] { return calls_.Report(results); });
  return absl::OkStatus();
}

absl::Status sluice_client::SendEarly(uint64_t offset, uint64_t count) {
  absl::Status ready = CheckJoined("sluice_send_early()");
  if (!ready.ok()) return ready;
  if (offset > model_.layout.size() || count > model_.layout.size() - offset) {
    return absl::InvalidArgumentError(absl::StrCat("sluice_send_early() got ", count,
                                                   " elements from ", offset, " on, the model has ",
                                                   model_.layout.size()));
  }
  if (count == 0) return absl::OkStatus();
  const SharedFloats part = {model_.gradient.floats.subspan(offset, count), model_.gradient.owner};
  absl::Status noted = next_.NoteEarly(offset, part.values);
  if (noted.ok()) thread_->Run([this, offset, part] { calls_.client()->SendEarly(offset, part); });
  return noted;
}

absl::Status sluice_client::GiveUpEarly() {
  absl::Status ready = CheckJoined("sluice_give_up_early()");
  if (!ready.ok()) return ready;
  thread_->Drain();
  calls_.client()->GiveUpEarly();
  next_.ForgetEarly();
  return absl::OkStatus();
}

absl::Status sluice_client::Prepare(absl::string_view call,
                                    absl::FunctionRef<absl::Status(sluice::NextPush&)> change) {
  absl::Status ready = CheckJoined(call);
  return ready.ok() ? change(next_) : ready;
}

absl::Status sluice_client::PrepareClient(
    absl::string_view call, absl::FunctionRef<absl::Status(ParameterClient&)> change) {
  absl::Status ready = CheckJoined(call);
  if (!ready.ok()) return ready;
  thread_->Drain();
  return change(*calls_.client());
}

absl::Status sluice_client::SetTables(absl::Span<const sluice_table> tables) {
  const absl::Status idle = thread_->CheckIdle("sluice_set_tables()");
  if (!idle.ok()) return idle;
  if (calls_.part() != ClientCalls::Part::kNew || !model_.layout.tables().empty()) {
    return absl::FailedPreconditionError(
        "sluice_set_tables() may be called once, before sluice_join()");
  }
  return sluice::AddTables(tables, &model_.layout, &model_.optimizer);
}

absl::Status sluice_client::SetConstants(absl::Span<const sluice_constant> constants) {
  const absl::Status idle = thread_->CheckIdle("sluice_set_constants()");
  if (!idle.ok()) return idle;
  if (calls_.part() != ClientCalls::Part::kNew || !model_.layout.constants().empty()) {
    return absl::FailedPreconditionError(
        "sluice_set_constants() may be called once, before sluice_join()");
  }
  return sluice::AddConstants(constants, &model_.layout, &model_.constants);
}

absl::Status sluice_client::CheckRows(absl::string_view call, uint32_t table,
                                      absl::Span<const RowId> ids) const {
  absl::Status idle = thread_->CheckIdle(call);
  if (!idle.ok()) return idle;
  if (calls_.part() == ClientCalls::Part::kNew) return CheckJoined(call);
  if (calls_.row_client() == nullptr) {
    return absl::FailedPreconditionError(
        "rows are pulled after this worker has left the job; pull them before it leaves, or after "
        "it has awaited the end of training and before it reports");
  }
  return sluice::CheckRowIds(call, model_.layout, table, ids);
}

absl::Status sluice_client::BeginPullRows(uint32_t table, absl::Span<const RowId> ids,
                                          float* rows) {
  const absl::Status ready = CheckRows("sluice_pull_rows()", table, ids);
  if (!ready.ok()) return ready;
  const absl::Span<float> to(rows, ids.size() * model_.layout.tables()[table].width);
  thread_->Begin([this, wanted = RowIds{table, {ids.begin(), ids.end()}}, to] {
    return calls_.PullRows(wanted, to);
  });
  return absl::OkStatus();
}

absl::Status sluice_client::PrefetchRows(uint32_t table, absl::Span<const RowId> ids) {
  absl::Status ready = CheckRows("sluice_prefetch_rows()", table, ids);
  if (!ready.ok()) return ready;
  thread_->Run(
      [this, wanted = RowIds{table, {ids.begin(), ids.end()}}] { calls_.PrefetchRows(wanted); });
  return ready;
}

absl::Status sluice_client::SetRowGradients(uint32_t table, absl::Span<const RowId> ids,
                                            const float* gradients) {
  absl::Status ready = CheckJoined("sluice_set_row_gradients()");
  if (ready.ok())
    ready = sluice::CheckRowIds("sluice_set_row_gradients()", model_.layout, table, ids);
  if (ready.ok()) next_.SetRows(table, ids, gradients);
  return ready;
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
  return new sluice_client(job, {*std::move(layout), *std::move(config), values, gradient});
}

absl::StatusOr<RunningMeans> MeansOf(const sluice_running_mean* means, size_t count) {
  RunningMeans read;
  for (const sluice_running_mean& mean : absl::MakeConstSpan(means, count)) {
    read.push_back(RunningMeanOf(mean.offset, mean.count, mean.decay));
  }
  const absl::Status sound = CheckRunningMeans(read);
  if (!sound.ok()) return sound;
  return read;
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

sluice_code sluice_set_model(sluice_client* client, sluice_save_model save, sluice_load_model load,
                             void* context) {
  if (save == nullptr || load == nullptr) {
    return sluice::CodeOf(
        absl::InvalidArgumentError("a function of sluice_set_model() is NULL, expected one that "
                                   "writes the model, and one that "
                                   "takes it"));
  }
  ParameterClient::Model model;
  model.save = [save, context]() -> absl::StatusOr<std::string> {
    const void* bytes = nullptr;
    uint64_t size = 0;
    const int32_t failed = save(context, &bytes, &size);
    if (failed == 0) return std::string(static_cast<const char*>(bytes), size);
    return absl::FailedPreconditionError(
        absl::StrCat("another worker needs the model, and the program could not write it: the ",
                     "function of sluice_set_model() has returned ", failed));
  };
  model.load = [load, context](absl::string_view bytes) {
    const int32_t failed = load(context, bytes.data(), bytes.size());
    if (failed == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the program could not take the model of another worker: the function of ",
                     "sluice_set_model() has returned ", failed));
  };
  return sluice::CodeOf(client->Configure("sluice_set_model()", [&](ClientModel& of_client) {
    if (!of_client.steps_itself()) {
      return absl::FailedPreconditionError(
          "sluice_set_model() is for the optimizer mean_gradient; with others the server has the "
          "model");
    }
    of_client.model = std::move(model);
    return absl::OkStatus();
  }));
}

sluice_code sluice_join(sluice_client* client) { return sluice::CodeOf(client->BeginJoin()); }

sluice_code sluice_push(sluice_client* client, uint32_t samples, const float* loss) {
  absl::optional<float> told;
  if (loss != nullptr) told = *loss;
  return sluice::CodeOf(client->BeginPush(samples, told));
}

sluice_code sluice_pull_slots(sluice_client* client) {
  return sluice::CodeOf(client->Begin("sluice_pull_slots()", &ClientCalls::PullSlots));
}

size_t sluice_slots(const sluice_client* client, sluice_slot* slots, size_t count,
                    uint64_t* optimizer_steps) {
  return client->Slots({slots, count}, optimizer_steps);
}

sluice_code sluice_leave(sluice_client* client) {
  return sluice::CodeOf(client->Begin("sluice_leave()", &ClientCalls::Leave));
}

sluice_code sluice_await_end(sluice_client* client) {
  return sluice::CodeOf(client->Begin("sluice_await_end()", &ClientCalls::AwaitEnd));
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
    size = sluice::kMostAttachedBytes + 1;
    data = nullptr;
  }
  const std::string bytes =
      data == nullptr ? std::string(size, '\0') : std::string(static_cast<const char*>(data), size);
  return sluice::CodeOf(client->PrepareClient("sluice_attach()", [&](ParameterClient& to) {
    return to.Attach({type, bytes});
  }));
}

sluice_status sluice_client_status(const sluice_client* client) { return client->status(); }

uint64_t sluice_earlier_launches(const sluice_client* client, uint64_t* numbers,
                                 uint64_t capacity) {
  const std::vector<uint64_t>& all = client->earlier_launches();
  std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), numbers);
  return all.size();
}

sluice_code sluice_keep_running_means(sluice_client* client, const sluice_running_mean* means,
                                      size_t count) {
  return sluice::Guarded([&] {
    auto read = sluice::MeansOf(means, count);
    if (!read.ok()) return read.status();
    return client->Configure("sluice_keep_running_means()", [&](ClientModel& model) {
      const absl::Status fits = CheckFits(*read, model.layout);
      if (fits.ok()) model.means = *std::move(read);
      return fits;
    });
  });
}

sluice_code sluice_set_running_means(sluice_client* client, const sluice_running_mean* means,
                                     size_t count) {
  return sluice::Guarded([&] {
    auto read = sluice::MeansOf(means, count);
    if (!read.ok()) return read.status();
    return client->Prepare("sluice_set_running_means()", [&](sluice::NextPush& next) {
      next.SetMeans(*std::move(read));
      return absl::OkStatus();
    });
  });
}

sluice_code sluice_set_clip_norm(sluice_client* client, double norm) {
  return sluice::Guarded([&] {
    return client->PrepareClient("sluice_set_clip_norm()",
                                 [&](ParameterClient& to) { return to.SetClipNorm(norm); });
  });
}

sluice_code sluice_set_options(sluice_client* client, size_t group, const sluice_option* options,
                               size_t count) {
  return sluice::Guarded([&] {
    return client->Prepare("sluice_set_options()", [&](sluice::NextPush& next) {
      return next.SetOptions(group, {options, count});
    });
  });
}

sluice_code sluice_take_model(sluice_client* client) {
  return sluice::CodeOf(client->Configure("sluice_take_model()", [](ClientModel& model) {
    if (model.model.load == nullptr) {
      return absl::FailedPreconditionError(
          "sluice_take_model() is for a client with sluice_set_model(); call that before");
    }
    model.model.takes_others = true;
    return absl::OkStatus();
  }));
}

sluice_code sluice_set_tables(sluice_client* client, const sluice_table* tables, size_t count) {
  return sluice::Guarded([&] { return client->SetTables({tables, count}); });
}

sluice_code sluice_set_constants(sluice_client* client, const sluice_constant* constants,
                                 size_t count) {
  return sluice::Guarded([&] { return client->SetConstants({constants, count}); });
}

sluice_code sluice_pull_rows(sluice_client* client, uint32_t table, const uint64_t* ids,
                             size_t count, float* rows) {
  return sluice::Guarded([&] { return client->BeginPullRows(table, {ids, count}, rows); });
}

sluice_code sluice_prefetch_rows(sluice_client* client, uint32_t table, const uint64_t* ids,
                                 size_t count) {
  return sluice::Guarded([&] { return client->PrefetchRows(table, {ids, count}); });
}

sluice_code sluice_set_row_gradients(sluice_client* client, uint32_t table, const uint64_t* ids,
                                     size_t count, const float* gradients) {
  return sluice::Guarded([&] { return client->SetRowGradients(table, {ids, count}, gradients); });
}
