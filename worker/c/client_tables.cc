// The part of sluice_client that has to do with tables and constants.

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/c/client.h"
#include "worker/c/model.h"

using sluice::RowGradient;
using sluice::RowGradients;
using sluice::RowId;
using sluice::RowIds;

absl::Status sluice_client::SetTables(absl::Span<const sluice_table> tables) {
  const absl::Status idle = calls_->CheckIdle("sluice_set_tables()");
  if (!idle.ok()) return idle;
  if (part_ != Part::kNew || !layout_.tables().empty()) {
    return absl::FailedPreconditionError(
        "sluice_set_tables() may be called once, before sluice_join()");
  }
  return sluice::AddTables(tables, &layout_, &optimizer_);
}

absl::Status sluice_client::SetConstants(absl::Span<const sluice_constant> constants) {
  const absl::Status idle = calls_->CheckIdle("sluice_set_constants()");
  if (!idle.ok()) return idle;
  if (part_ != Part::kNew || !layout_.constants().empty()) {
    return absl::FailedPreconditionError(
        "sluice_set_constants() may be called once, before sluice_join()");
  }
  return sluice::AddConstants(constants, &layout_, &constants_);
}

absl::Status sluice_client::CheckRows(absl::string_view call, uint32_t table,
                                      absl::Span<const RowId> ids) const {
  absl::Status joined = CheckJoined(call);
  return joined.ok() ? sluice::CheckRowIds(call, layout_, table, ids) : joined;
}

absl::Status sluice_client::BeginPullRows(uint32_t table, absl::Span<const RowId> ids,
                                          float* rows) {
  const absl::Status ready = CheckRows("sluice_pull_rows()", table, ids);
  if (!ready.ok()) return ready;
  const absl::Span<float> to(rows, ids.size() * layout_.tables()[table].width);
  calls_->Begin([this, wanted = RowIds{table, {ids.begin(), ids.end()}}, to] {
    return PullRows(wanted, to);
  });
  return absl::OkStatus();
}

// What was prefetched for other ids is given up.
absl::Status sluice_client::PullRows(const RowIds& rows, absl::Span<float> to) {
  auto prefetched = prefetched_.extract(rows.table);
  if (rows.ids.empty()) return absl::OkStatus();
  if (!prefetched.empty() && prefetched.mapped().rows.front().ids == rows.ids) {
    return client_->FinishRows(std::move(prefetched.mapped()), to);
  }
  return client_->PullRows({rows}, to);
}

absl::Status sluice_client::PrefetchRows(uint32_t table, absl::Span<const RowId> ids) {
  const absl::Status ready = CheckRows("sluice_prefetch_rows()", table, ids);
  if (!ready.ok()) return ready;
  calls_->Run([this, wanted = RowIds{table, {ids.begin(), ids.end()}}] {
    prefetched_.erase(wanted.table);
    if (!wanted.ids.empty()) prefetched_.emplace(wanted.table, client_->StartRows({wanted}));
  });
  return absl::OkStatus();
}

absl::Status sluice_client::SetRowGradients(uint32_t table, absl::Span<const RowId> ids,
                                            const float* gradients) {
  const absl::Status ready = CheckRows("sluice_set_row_gradients()", table, ids);
  if (!ready.ok()) return ready;
  if (ids.empty()) {
    row_gradients_.erase(table);
    return absl::OkStatus();
  }
  RowGradient& of_table = row_gradients_[table];
  of_table.rows = {table, {ids.begin(), ids.end()}};
  const size_t elements = ids.size() * layout_.tables()[table].width;
  of_table.values = sluice::Share(std::vector<float>(gradients, gradients + elements));
  return absl::OkStatus();
}

RowGradients sluice_client::TakeRowGradients() {
  RowGradients taken;
  for (auto& [table, gradient] : row_gradients_) taken.push_back(std::move(gradient));
  row_gradients_.clear();
  return taken;
}

// ---- sluice.h ----

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
