#include "server/aggregation/gathered_push.h"

#include "common/base/error.h"

namespace sluice {
namespace {

// No peer sees this status: Add() turns it into false.
absl::Status Ended() { return absl::CancelledError("the push takes no more chunks"); }

}  // namespace

bool GatheredPush::Add(absl::StatusOr<TensorChunk> chunk) {
  if (!chunk.ok()) return Fail(chunk.status());
  const std::shared_ptr<FloatBuffer> written = memory();  // also if another call ends the push
  const absl::Status added = StageChunk(
      *std::move(chunk), [this](uint64_t offset) { return ElementName(offset); },
      Staging{&transforms_, &parallel_, FloatsOf(written)},
      [this](const TensorChunk& arrived) { return Reserve(arrived); },
      [this](absl::StatusOr<TensorChunk> checked) { return Place(std::move(checked)); });
  return added.ok();
}

bool GatheredPush::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  return Takes() && Note(status);
}

absl::Status GatheredPush::Reserve(const TensorChunk& chunk) {
  absl::MutexLock lock(&mu_);
  if (!Takes()) return Ended();
  if (Note(push_->Reserve(chunk))) ++preparing_;
  return error_;
}

absl::Status GatheredPush::Place(absl::StatusOr<TensorChunk> chunk) {
  absl::MutexLock lock(&mu_);
  --preparing_;
  if (!Takes()) return Ended();
  if (Note(chunk.status())) push_->Place(*std::move(chunk));
  return error_;
}

bool GatheredPush::AddIds(absl::StatusOr<RowIds> ids) {
  absl::MutexLock lock(&mu_);
  return Takes() && Note(ids.ok() ? push_->AddIds(*std::move(ids)) : ids.status());
}

std::shared_ptr<FloatBuffer> GatheredPush::memory() const {
  absl::MutexLock lock(&mu_);
  return push_ == nullptr ? nullptr : push_->gradient().memory();
}

std::string GatheredPush::ElementName(uint64_t offset) const {
  absl::MutexLock lock(&mu_);
  return push_ == nullptr ? "an element" : push_->ElementName(offset);
}

bool GatheredPush::Summarize(const absl::StatusOr<PushSummary>& summary) {
  absl::MutexLock lock(&mu_);
  return Takes() && Note(summary.ok() ? push_->Summarize(*summary) : summary.status());
}

absl::Status GatheredPush::error() const {
  absl::MutexLock lock(&mu_);
  return error_;
}

GatheredPush::Gathered GatheredPush::End() {
  absl::MutexLock lock(&mu_);
  if (preparing_ > 0 && error_.ok()) {
    error_ = MakeError(Reason::kBadChunk,
                       "the push ended before its lanes; wait for their answers first");
  }
  return {std::move(push_), error_};
}

bool GatheredPush::Note(const absl::Status& status) {
  error_ = status;
  return status.ok();
}

}  // namespace sluice
