#include "server/durable/checkpoint/whole_checkpoint.h"

#include <utility>

#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/read_progress.h"
#include "common/checkpoint/reading/row_chain.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "server/state/checkpoint_source.h"

namespace sluice {
namespace {

void AddRows(StripeCheckpoint stripe, ShardCheckpoint* state) {
  state->rows = std::move(stripe.rows);
  state->row_slots = std::move(stripe.row_slots);
  state->row_steps = stripe.row_steps;
}

absl::StatusOr<ShardCheckpoint> AddStripe(FileSystem& files, const std::string& path,
                                          StripePlace place, ShardCheckpoint state,
                                          const ProgressOutput& output) {
  ReadProgress progress(path, *state.layout, state.slots.size(), output);
  auto stripe = StripeStore(files, DirectoryOf(path), place)
                    .Load(SourceOf(state), *state.layout, progress.listener());
  if (!stripe.ok()) return stripe.status();
  state.parameters = std::move(stripe->parameters);
  state.slots = std::move(stripe->slots);
  AddRows(*std::move(stripe), &state);
  return state;
}

// Adds the rows to the values that one server has saved.
absl::Status OpenRows(FileSystem& files, const std::string& path, ShardCheckpoint* checkpoint) {
  if (checkpoint->layout->tables().empty()) return absl::OkStatus();
  RowSource source = {{DirectoryOf(path)},
                      checkpoint->job_id,
                      checkpoint->incarnations.current(),
                      checkpoint->step,
                      {{StripePlace(), checkpoint->row_files}}};
  auto rows = RowChain::Open(files, std::move(source), *checkpoint->layout, /*whole=*/true);
  if (!rows.ok()) return rows.status();
  checkpoint->row_slots = (*rows)->slots();
  checkpoint->rows = *std::move(rows);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardCheckpoint> ReadWholeCheckpoint(FileSystem& files, const std::string& path,
                                                    const ProgressOutput& output) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  if (state->stripes.empty()) {
    auto checkpoint = ReadCheckpoint(**file, path, output);
    const absl::Status added =
        checkpoint.ok() ? OpenRows(files, path, &*checkpoint) : absl::OkStatus();
    if (!added.ok()) return added;
    return checkpoint;
  }
  return AddStripe(files, path, StripePlace(), *std::move(state), output);
}

absl::StatusOr<ShardCheckpoint> ReadStripeOfCheckpoint(FileSystem& files, const std::string& path,
                                                       StripePlace place) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  return AddStripe(files, path, place, *std::move(state), ProgressOutput());
}

absl::StatusOr<ShardCheckpoint> ReadRowsOfCheckpoint(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  auto rows = StripeStore(files, DirectoryOf(path), {}).LoadRows(SourceOf(*state), *state->layout);
  if (!rows.ok()) return rows.status();
  AddRows(*std::move(rows), &*state);
  return state;
}

}  // namespace sluice
