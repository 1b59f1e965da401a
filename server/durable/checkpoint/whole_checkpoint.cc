#include "server/durable/checkpoint/whole_checkpoint.h"

#include <utility>

#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/stripe_store.h"

namespace sluice {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

absl::StatusOr<ShardCheckpoint> AddStripe(FileSystem& files, const std::string& path,
                                          StripePlace place, ShardCheckpoint state) {
  auto stripe = StripeStore(files, DirectoryOf(path), place).Load(SourceOf(state), *state.layout);
  if (!stripe.ok()) return stripe.status();
  state.parameters = std::move(stripe->parameters);
  state.slots = std::move(stripe->slots);
  return state;
}

}  // namespace

absl::StatusOr<ShardCheckpoint> ReadWholeCheckpoint(FileSystem& files, const std::string& path,
                                                    const ProgressOutput& output) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  if (state->stripes.empty()) return ReadCheckpoint(**file, path, output);
  return AddStripe(files, path, StripePlace(), *std::move(state));
}

absl::StatusOr<ShardCheckpoint> ReadStripeOfCheckpoint(FileSystem& files, const std::string& path,
                                                       StripePlace place) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  auto state = ReadCheckpointState(**file);
  if (!state.ok()) return state;
  return AddStripe(files, path, place, *std::move(state));
}

}  // namespace sluice
