#include "server/durable/checkpoint/stripe_store.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/tensor/stripes.h"
#include "server/durable/format/unfinished_file.h"

namespace sluice {
namespace {

StripeCheckpoint MakeRoom(const CheckpointSource& source, uint64_t size) {
  StripeCheckpoint stripe;
  for (const std::string& slot : source.slots) stripe.slots.push_back({slot, FloatBuffer(size)});
  stripe.optimizer_steps = source.optimizer_steps;
  return stripe;
}

bool Contains(absl::Span<const CheckpointName> names, const CheckpointName& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const CheckpointName& one) { return one.FileName() == name.FileName(); });
}

}  // namespace

absl::StatusOr<uint64_t> StripeStore::Save(const std::string& job_id,
                                           const CheckpointName& checkpoint, const Layout& whole,
                                           const StripeView& stripe) {
  const StripeName name = {job_id, checkpoint.incarnation, checkpoint.step, place_.stripe,
                           place_.stripes};
  if (!sync_.error().ok()) return sync_.error();
  std::vector<RowFile> row_files;
  if (stripe.rows != nullptr) {
    auto rows = rows_.Save(
        {job_id, checkpoint.incarnation, checkpoint.step, whole, stripe.row_slots}, *stripe.rows);
    if (!rows.ok()) return rows.status();
    row_files = *std::move(rows);
  }
  uint64_t checksum = 0;
  absl::Status saved =
      WriteThenName(files_, PathOf(name.FileName()), [&](WritableFile& file) -> absl::Status {
        const auto written = WriteStripe(name, whole, stripe, file, row_files);
        checksum = written.value_or(0);
        return written.status();
      });
  if (saved.ok()) saved = sync_.Sync();
  if (!saved.ok()) return saved;
  return checksum;
}

absl::StatusOr<StripeCheckpoint> StripeStore::Load(
    const CheckpointSource& source, const Layout& whole,
    const std::function<void(uint64_t bytes)>& on_read) const {
  const absl::Status sound = Reader().Check(source, whole);
  if (!sound.ok()) return sound;
  const uint64_t size = Stripes(whole.size(), place_.stripes).SizeOf(place_.stripe);
  StripeCheckpoint loaded = MakeRoom(source, size);
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = source.step;
  parameters->values = FloatBuffer(size);
  std::vector<absl::Span<float>> to = {parameters->values.span()};
  for (SlotCheckpoint& slot : loaded.slots) to.push_back(slot.values.span());
  auto rows = Reader().Read(source, whole, to, on_read);
  if (!rows.ok()) return rows.status();
  const absl::Status added = AddRows(source, whole, *std::move(rows), &loaded);
  if (!added.ok()) return added;
  loaded.parameters = parameters;
  return loaded;
}

absl::StatusOr<StripeCheckpoint> StripeStore::LoadRows(const CheckpointSource& source,
                                                       const Layout& whole) const {
  StripeCheckpoint loaded;
  auto rows = Reader().Read(source, whole, {}, nullptr);
  if (!rows.ok()) return rows.status();
  const absl::Status added = AddRows(source, whole, *std::move(rows), &loaded);
  if (!added.ok()) return added;
  return loaded;
}

absl::Status StripeStore::AddRows(const CheckpointSource& source, const Layout& whole,
                                  SavedRowFiles rows, StripeCheckpoint* loaded) const {
  loaded->row_steps = rows.steps;
  auto chain = Reader().OpenRows(source, whole, std::move(rows.servers));
  if (!chain.ok()) return chain.status();
  if (*chain == nullptr) return absl::OkStatus();
  loaded->row_slots = (*chain)->slots();
  loaded->rows = *std::move(chain);
  return absl::OkStatus();
}

void StripeStore::RemoveOthers(absl::Span<const CheckpointName> keep) const {
  const auto names = files_.List(directory_);
  if (!names.ok() || keep.empty()) return;
  const CheckpointName newest = *std::max_element(keep.begin(), keep.end());
  std::vector<IncarnationAndStep> numbers;
  for (const CheckpointName& name : keep) numbers.emplace_back(name.incarnation, name.step);
  rows_.RemoveOthers(numbers);
  for (const std::string& name : *names) {
    const absl::string_view finished = absl::StripSuffix(name, kUnfinished);
    const auto stripe = StripeName::Parse(finished);
    if (!stripe.has_value() || stripe->stripe % place_.stripes != place_.stripe) continue;
    const CheckpointName of = {stripe->incarnation, stripe->step};
    const bool counts = finished == name && (!(of < newest) || Contains(keep, of));
    const absl::Status removed = counts ? absl::OkStatus() : files_.Remove(PathOf(name));
    LOG_IF(WARNING, !removed.ok()) << removed.message();
  }
}

}  // namespace sluice
