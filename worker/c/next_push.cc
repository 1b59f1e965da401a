#include "worker/c/next_push.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/c/model.h"

namespace sluice {

absl::Status NextPush::SetOptions(size_t group, absl::Span<const sluice_option> options) {
  absl::Status noted = NoteOptions(optimizer_, group, options, &options_);
  options_changed_ = options_changed_ || noted.ok();
  return noted;
}

absl::optional<ChangedOptions::Groups> NextPush::TakeOptions() {
  if (!std::exchange(options_changed_, false)) return absl::nullopt;
  return options_;
}

void NextPush::SetRows(uint32_t table, absl::Span<const RowId> ids, const float* gradients) {
  if (ids.empty()) {
    rows_.erase(table);
    return;
  }
  const size_t elements = ids.size() * layout_.tables()[table].width;
  rows_[table] = {{table, {ids.begin(), ids.end()}},
                  Share(std::vector<float>(gradients, gradients + elements))};
}

RowGradients NextPush::TakeRows() {
  RowGradients taken;
  for (auto& [table, gradient] : rows_) taken.push_back(std::move(gradient));
  rows_.clear();
  return taken;
}

absl::Status NextPush::NoteEarly(uint64_t offset, absl::Span<const float> part) {
  const absl::Status fresh = early_.Add(offset, part.size());
  if (!fresh.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sluice_send_early() sends each element once: ", fresh.message(),
                     "; sluice_give_up_early() drops what was sent"));
  }
  fingerprints_.Note(offset, part);
  return fresh;
}

// A push replaces the values of running means.
absl::Status NextPush::CheckEarly(absl::Span<const float> gradient) const {
  for (const RunningMean& mean : means_) {
    const auto gap = early_.FirstGap(mean.begin);
    if (gap.has_value() && gap->begin == mean.begin && gap->end >= mean.end) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the running means of elements ", mean.begin, " to ", mean.end,
                     " were sent early, or are not in the vector; sluice_push() replaces and sends "
                     "them, so do not call sluice_send_early() for them"));
  }
  const absl::optional<uint64_t> changed = fingerprints_.FirstChanged(gradient);
  if (!changed.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(layout_.ElementName(*changed),
                   " of the gradient has changed after it was sent early; change it before that, "
                   "or send nothing early (sluice_send_early(), or overlap in Python)"));
}

void NextPush::ForgetEarly() {
  fingerprints_.Clear();
  early_ = Coverage(layout_.size());
}

}  // namespace sluice
