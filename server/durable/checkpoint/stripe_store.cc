#include "server/durable/checkpoint/stripe_store.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/durable/checkpoint/load_stripe.h"
#include "server/durable/format/unfinished_file.h"

namespace sluice {
namespace {

bool Contains(absl::Span<const CheckpointName> names, const CheckpointName& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const CheckpointName& one) { return one.FileName() == name.FileName(); });
}

}  // namespace

absl::StatusOr<uint64_t> StripeStore::Save(const std::string& job_id,
                                           const CheckpointName& checkpoint, const Layout& whole,
                                           const StripeCheckpoint& stripe) {
  const StripeName name = {job_id, checkpoint.incarnation, checkpoint.step, place_.stripe,
                           place_.stripes};
  if (!sync_.error().ok()) return sync_.error();
  std::vector<RowFile> row_files;
  const RowSnapshot* const rows = stripe.parameters->rows.get();
  if (rows != nullptr) {
    auto saved = rows_.Save(
        {job_id, checkpoint.incarnation, checkpoint.step, whole, stripe.row_slots}, *rows);
    if (!saved.ok()) return saved.status();
    row_files = *std::move(saved);
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
  return LoadStripe(StripeReader(files_, {{directory_}}, place_), place_, source, whole, on_read);
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
