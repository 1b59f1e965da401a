#include "worker/c/call_thread.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status CallThread::CheckIdle(absl::string_view call) const {
  if (!begun_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(call, " was called while another call is under way; wait for that first"));
}

void CallThread::Begin(std::function<absl::Status()> call) {
  begun_ = true;
  thread_.Run([this, call = std::move(call)] {
    absl::Status result = call();
    const absl::MutexLock lock(&mu_);
    result_ = std::move(result);
  });
}

absl::optional<absl::Status> CallThread::Wait(absl::Duration longest) {
  if (!begun_) return absl::OkStatus();
  const absl::MutexLock lock(&mu_);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return result_.has_value(); };
  if (!mu_.AwaitWithTimeout(absl::Condition(&ended), longest)) return absl::nullopt;
  begun_ = false;
  const absl::Status result = *std::move(result_);
  result_.reset();
  return result;
}

}  // namespace sluice
