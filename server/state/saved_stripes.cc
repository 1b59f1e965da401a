#include "server/state/saved_stripes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sluice {

void SavedStripes::Set(uint32_t holder, absl::StatusOr<uint64_t> checksum) {
  absl::MutexLock lock(&mu_);
  if (checksum.ok()) {
    checksums_[holder - 1] = *checksum;
  } else if (failed_.ok()) {
    failed_ = absl::Status(checksum.status().code(),
                           absl::StrCat("server ", holder, " of ", checksums_.size() + 1,
                                        " cannot save its part: ", checksum.status().message()));
  }
}

void SavedStripes::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!IsDone()) failed_ = why;
}

bool SavedStripes::done() const {
  absl::MutexLock lock(&mu_);
  return IsDone();
}

bool SavedStripes::IsDone() const {
  return !failed_.ok() ||
         std::all_of(checksums_.begin(), checksums_.end(),
                     [](const absl::optional<uint64_t>& one) { return one.has_value(); });
}

absl::StatusOr<std::vector<uint64_t>> SavedStripes::Await() const {
  absl::MutexLock lock(&mu_, absl::Condition(this, &SavedStripes::IsDone));
  if (!failed_.ok()) return failed_;
  std::vector<uint64_t> checksums;
  for (const absl::optional<uint64_t>& one : checksums_) checksums.push_back(*one);
  return checksums;
}

}  // namespace sluice
