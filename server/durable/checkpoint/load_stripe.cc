#include "server/durable/checkpoint/load_stripe.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/stripes.h"

namespace sluice {
namespace {

StripeCheckpoint MakeRoom(const CheckpointSource& source, uint64_t size) {
  StripeCheckpoint stripe;
  for (const std::string& slot : source.slots) stripe.slots.push_back({slot, FloatBuffer(size)});
  stripe.optimizer_steps = source.optimizer_steps;
  return stripe;
}

absl::Status AddRows(const StripeReader& reader, const CheckpointSource& source,
                     const Layout& whole, SavedRowFiles rows, StripeCheckpoint* loaded) {
  loaded->row_steps = rows.steps;
  auto chain = reader.OpenRows(source, whole, std::move(rows.servers));
  if (!chain.ok()) return chain.status();
  if (*chain == nullptr) return absl::OkStatus();
  loaded->row_slots = (*chain)->slots();
  loaded->rows = *std::move(chain);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StripeCheckpoint> LoadStripe(const StripeReader& reader, StripePlace place,
                                            const CheckpointSource& source, const Layout& whole,
                                            const std::function<void(uint64_t bytes)>& on_read) {
  const absl::Status sound = reader.Check(source, whole);
  if (!sound.ok()) return sound;
  const uint64_t size = Stripes(whole.size(), place.stripes).SizeOf(place.stripe);
  StripeCheckpoint loaded = MakeRoom(source, size);
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = source.step;
  parameters->values = FloatBuffer(size);
  std::vector<absl::Span<float>> to = {parameters->values.span()};
  for (SlotCheckpoint& slot : loaded.slots) to.push_back(slot.values.span());
  auto rows = reader.Read(source, whole, to, on_read);
  if (!rows.ok()) return rows.status();
  const absl::Status added = AddRows(reader, source, whole, *std::move(rows), &loaded);
  if (!added.ok()) return added;
  loaded.parameters = parameters;
  return loaded;
}

absl::StatusOr<StripeCheckpoint> LoadStripeRows(const StripeReader& reader,
                                                const CheckpointSource& source,
                                                const Layout& whole) {
  StripeCheckpoint loaded;
  auto rows = reader.Read(source, whole, {}, nullptr);
  if (!rows.ok()) return rows.status();
  const absl::Status added = AddRows(reader, source, whole, *std::move(rows), &loaded);
  if (!added.ok()) return added;
  return loaded;
}

}  // namespace sluice
