#include "common/checkpoint/reading/read_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace sluice {

ReadProgress::ReadProgress(const std::string& path, const Layout& layout, size_t slots,
                           const ProgressOutput& output)
    : total_(std::max(uint64_t{1}, (1 + slots) * layout.size() * sizeof(float))),
      line_(absl::StrCat("reading ", path), total_, output, RealClock()) {}

std::function<void(uint64_t bytes)> ReadProgress::listener() {
  return [this](uint64_t bytes) {
    read_ = std::min(total_, read_ + bytes);
    line_.Reach(read_);
  };
}

}  // namespace sluice
