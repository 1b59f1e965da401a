#include "server/state/saved_stripes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sluice {

bool SavedStripes::Set(uint32_t replica, const absl::StatusOr<uint64_t>& checksum) {
  absl::MutexLock lock(&mu_);
  if (checksums_[replica - 1].has_value()) return false;
  checksums_[replica - 1] = checksum;
  if (!checksum.ok() && failed_.ok()) {
    failed_ = absl::Status(checksum.status().code(),
                           absl::StrCat("server ", replica, " of ", checksums_.size() + 1,
                                        " cannot save its part: ", checksum.status().message()));
  }
  return true;
}

void SavedStripes::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!IsDone()) failed_ = why;
}

bool SavedStripes::complete() const {
  absl::MutexLock lock(&mu_);
  return IsComplete();
}

bool SavedStripes::IsComplete() const {
  return std::all_of(checksums_.begin(), checksums_.end(),
                     [](const auto& one) { return one.has_value(); });
}

absl::StatusOr<std::vector<uint64_t>> SavedStripes::Await() const {
  absl::MutexLock lock(&mu_, absl::Condition(this, &SavedStripes::IsDone));
  if (!failed_.ok()) return failed_;
  std::vector<uint64_t> checksums;
  for (const auto& one : checksums_) checksums.push_back(**one);
  return checksums;
}

}  // namespace sluice
