#include "server/aggregation/gathered_push.h"

#include "common/base/error.h"

namespace sluice {

bool GatheredPush::Add(absl::StatusOr<TensorChunk> chunk) {
  {
    absl::MutexLock lock(&mu_);
    if (!Takes()) return false;
    if (!Note(chunk.ok() ? push_->Reserve(*chunk) : chunk.status())) return false;
    ++preparing_;
  }
  chunk = PrepareChunk(*std::move(chunk), *layout_, transforms_, &parallel_);
  absl::MutexLock lock(&mu_);
  --preparing_;
  if (!Takes() || !Note(chunk.status())) return false;
  push_->Place(*std::move(chunk));
  return true;
}

bool GatheredPush::Summarize(const absl::StatusOr<PushSummary>& summary) {
  absl::MutexLock lock(&mu_);
  return Takes() && Note(summary.ok() ? push_->Summarize(*summary) : summary.status());
}

absl::Status GatheredPush::trouble() const {
  absl::MutexLock lock(&mu_);
  return trouble_;
}

GatheredPush::Gathered GatheredPush::End() {
  absl::MutexLock lock(&mu_);
  if (preparing_ > 0 && trouble_.ok()) {
    trouble_ = MakeError(Reason::kBadChunk,
                         "the push ended before its lanes; wait for their answers first");
  }
  return {std::move(push_), trouble_};
}

bool GatheredPush::Note(const absl::Status& status) {
  trouble_ = status;
  return status.ok();
}

}  // namespace sluice
