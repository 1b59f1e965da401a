#include "server/durable/checkpoint/whole_checkpoint.h"

#include <utility>

#include "common/checkpoint/reading/read_progress.h"
#include "common/checkpoint/reading/row_chain.h"
#include "common/checkpoint/reading/stripe_reader.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/load_stripe.h"
#include "server/state/checkpoint_source.h"

namespace sluice {
namespace {

void AddRows(StripeCheckpoint stripe, ShardCheckpoint* state) {
  state->rows = std::move(stripe.rows);
  state->row_slots = std::move(stripe.row_slots);
  state->row_steps = stripe.row_steps;
}

absl::StatusOr<ShardCheckpoint> AddStripe(FileSystem& files, const CheckpointPlace& place,
                                          StripePlace wanted, ShardCheckpoint state,
                                          const ProgressOutput& output) {
  ReadProgress progress(place.file, *state.layout, state.slots.size(), output);
  auto stripe = LoadStripe(StripeReader(files, place, wanted), wanted, SourceOf(state),
                           *state.layout, progress.listener());
  if (!stripe.ok()) return stripe.status();
  state.parameters = std::move(stripe->parameters);
  state.slots = std::move(stripe->slots);
  AddRows(*std::move(stripe), &state);
  return state;
}

// Adds the rows to the values that one server has saved.
absl::Status OpenRows(FileSystem& files, const CheckpointPlace& place,
                      ShardCheckpoint* checkpoint) {
  if (checkpoint->layout->tables().empty()) return absl::OkStatus();
  RowSource source = {place.directories,
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

absl::StatusOr<ShardCheckpoint> ReadWholeCheckpoint(FileSystem& files, const CheckpointPlace& place,
                                                    const ProgressOutput& output) {
  const auto file = files.Open(place.file);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  if (state->stripes.empty()) {
    auto checkpoint = ReadCheckpoint(**file, place.file, output);
    const absl::Status added =
        checkpoint.ok() ? OpenRows(files, place, &*checkpoint) : absl::OkStatus();
    if (!added.ok()) return added;
    return checkpoint;
  }
  return AddStripe(files, place, StripePlace(), *std::move(state), output);
}

absl::StatusOr<ShardCheckpoint> ReadStripeOfCheckpoint(FileSystem& files,
                                                       const CheckpointPlace& place,
                                                       StripePlace stripe) {
  const auto file = files.Open(place.file);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  return AddStripe(files, place, stripe, *std::move(state), ProgressOutput());
}

absl::StatusOr<ShardCheckpoint> ReadRowsOfCheckpoint(FileSystem& files,
                                                     const CheckpointPlace& place) {
  const auto file = files.Open(place.file);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  auto rows = LoadStripeRows(StripeReader(files, place, {}), SourceOf(*state), *state->layout);
  if (!rows.ok()) return rows.status();
  AddRows(*std::move(rows), &*state);
  return state;
}

}  // namespace sluice
