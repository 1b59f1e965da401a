#include "server/durable/checkpoint/stripe_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace sluice {
namespace {

uint64_t BytesOf(const ShardCheckpoint& state) {
  return (1 + state.slots.size()) * state.layout->size() * sizeof(float);
}

}  // namespace

StripeProgress::StripeProgress(const std::string& path, const ShardCheckpoint& state,
                               const ProgressOutput& output)
    : total_(std::max(uint64_t{1}, BytesOf(state))),
      line_(absl::StrCat("reading ", path), total_, output, RealClock()) {}

std::function<void(uint64_t bytes)> StripeProgress::listener() {
  return [this](uint64_t bytes) {
    read_ = std::min(total_, read_ + bytes);
    line_.Reach(read_);
  };
}

}  // namespace sluice
