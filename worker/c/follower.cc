#include "worker/c/follower.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "worker/c/model.h"
#include "worker/worker_context.h"

using sluice::Layout;

sluice_follower::sluice_follower(const sluice::Job& job, Layout layout,
                                 const sluice_buffer& parameters)
    : job_(job), layout_(std::move(layout)), parameters_(parameters) {}

absl::Status sluice_follower::SetTables(absl::Span<const sluice_table> tables) {
  const absl::Status idle = calls_.CheckIdle("sluice_follower_set_tables()");
  if (!idle.ok()) return idle;
  if (follower_ != nullptr || !layout_.tables().empty()) {
    return absl::FailedPreconditionError(
        "sluice_follower_set_tables() may be called once, before sluice_follow()");
  }
  sluice::OptimizerConfig ignored;  // an observer has none
  return sluice::AddTables(tables, &layout_, &ignored);
}

absl::Status sluice_follower::SetConstants(absl::Span<const sluice_constant> constants) {
  const absl::Status idle = calls_.CheckIdle("sluice_follower_set_constants()");
  if (!idle.ok()) return idle;
  if (follower_ != nullptr || !layout_.constants().empty()) {
    return absl::FailedPreconditionError(
        "sluice_follower_set_constants() may be called once, before sluice_follow()");
  }
  return sluice::AddConstants(constants, &layout_, &constants_);
}

absl::Status sluice_follower::SetRows(uint32_t table, absl::Span<const sluice::RowId> ids,
                                      float* rows) {
  absl::Status ready = calls_.CheckIdle("sluice_follow_rows()");
  if (ready.ok()) ready = sluice::CheckRowIds("sluice_follow_rows()", layout_, table, ids);
  if (!ready.ok()) return ready;
  if (ids.empty()) {
    rows_.erase(table);
    return absl::OkStatus();
  }
  const size_t elements = ids.size() * layout_.tables()[table].width;
  rows_[table] = {{ids.begin(), ids.end()}, absl::MakeSpan(rows, elements)};
  return absl::OkStatus();
}

absl::Status sluice_follower::BeginNext(uint64_t every) {
  absl::Status idle = calls_.CheckIdle("sluice_follow()");
  if (!idle.ok()) return idle;
  if (every == 0) {
    return absl::InvalidArgumentError(
        "sluice_follow() got 0 for `every`, expected at least 1 step between two");
  }
  const absl::Status has_model = sluice::CheckNotEmpty("sluice_follower_set_tables()", layout_);
  if (!has_model.ok()) return has_model;
  calls_.Begin([this, every] {
    const absl::Status next = Next(every);
    // The follower's code for a server that is gone, since no server answers with it.
    return absl::IsDeadlineExceeded(next) ? absl::UnavailableError(next.message()) : next;
  });
  return absl::OkStatus();
}

absl::Status sluice_follower::Connect() {
  auto connection = job_.context().Connect();
  if (!connection.ok()) return connection.status();
  sluice::JoinRequest request = job_.context().Identity(sluice::SessionRole::kObserver);
  // A process may have several followers, beside a worker.
  request.worker = absl::StrCat(job_.name(), "-follower-", sluice::RandomHex(2));
  request.process_nonce = sluice::RandomNonce();
  request.layout = layout_;
  request.memory = parameters_.shared;
  follower_ = std::make_unique<sluice::ParameterFollower>(
      *std::move(connection), std::move(request), job_.context().connect_timeout());
  return follower_->KeepConstants(constants_);
}

absl::Status sluice_follower::Next(uint64_t every) {
  if (follower_ == nullptr) {
    const absl::Status connected = Connect();
    if (!connected.ok()) return connected;
  }
  std::vector<sluice::RowIds> wanted;
  size_t elements = 0;
  for (const auto& [table, rows] : rows_) {
    wanted.push_back({table, rows.ids});
    elements += rows.to.size();
  }
  std::vector<float> pulled(elements);
  const auto next = follower_->Next(every, parameters_.floats, wanted, absl::MakeSpan(pulled));
  if (!next.ok()) return next.status();
  auto from = pulled.begin();
  for (const auto& [table, rows] : rows_) {
    if (next->has_value()) std::copy_n(from, rows.to.size(), rows.to.begin());
    from += static_cast<std::ptrdiff_t>(rows.to.size());
  }
  if (next->has_value()) {
    followed_ = {(*next)->step.value(), (*next)->incarnation.value(), 0,
                 follower_->constants_pulled()};
  } else {
    followed_.ended = 1;
  }
  return absl::OkStatus();
}

absl::optional<absl::Status> sluice_follower::Wait(absl::Duration longest,
                                                   sluice_followed* followed) {
  const absl::optional<absl::Status> result = calls_.Wait(longest);
  if (result.has_value() && result->ok() && followed != nullptr) *followed = followed_;
  return result;
}

// ---- sluice.h ----

sluice_code sluice_follower_create(sluice_job* job, const sluice_model* model,
                                   sluice_buffer* parameters, sluice_follower** follower) {
  if (job->job.is_server()) {
    return sluice::CodeOf(absl::FailedPreconditionError(
        "the process that serves cannot follow its own job; follow it from another process"));
  }
  return sluice::Guarded([&]() -> absl::Status {
    auto layout = sluice::LayoutOf(*model);
    if (!layout.ok()) return layout.status();
    if (parameters->floats.size() != layout->size()) {
      return absl::InvalidArgumentError(absl::StrCat("the buffer for parameters has ",
                                                     parameters->floats.size(),
                                                     " elements, the model has ", layout->size()));
    }
    *follower = new sluice_follower(job->job, *std::move(layout), *parameters);
    return absl::OkStatus();
  });
}

sluice_code sluice_follower_set_tables(sluice_follower* follower, const sluice_table* tables,
                                       size_t count) {
  return sluice::Guarded([&] { return follower->SetTables({tables, count}); });
}

sluice_code sluice_follower_set_constants(sluice_follower* follower,
                                          const sluice_constant* constants, size_t count) {
  return sluice::Guarded([&] { return follower->SetConstants({constants, count}); });
}

sluice_code sluice_follow_rows(sluice_follower* follower, uint32_t table, const uint64_t* ids,
                               size_t count, float* rows) {
  return sluice::Guarded([&] { return follower->SetRows(table, {ids, count}, rows); });
}

void sluice_follower_free(sluice_follower* follower) { delete follower; }

sluice_code sluice_follow(sluice_follower* follower, uint64_t every) {
  return sluice::CodeOf(follower->BeginNext(every));
}

sluice_code sluice_follower_wait(sluice_follower* follower, double seconds,
                                 sluice_followed* followed) {
  const auto result = follower->Wait(sluice::DurationOf(seconds), followed);
  return result.has_value() ? sluice::CodeOf(*result) : static_cast<sluice_code>(SLUICE_PENDING);
}
