#include "server/shard/tensor_summaries.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

TensorSummary SummaryOf(const StripedTensor& tensor, Step step,
                        const std::vector<TensorPart>& parts) {
  return {step, tensor.Combine(parts), tensor.Join(parts)};
}

absl::StatusOr<uint64_t> TensorSummaries::Begin(const StripedTensor& tensor, uint32_t replicas,
                                                Step step, SummaryCallback done) {
  if (waiting_.size() == kMost) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMost,
                     " calls wait for statistics of tensors, the limit; "
                     "call again when one was answered"));
  }
  Waiting waiting = {tensor, step, std::move(done), std::vector<TensorPart>(replicas), {}};
  for (uint32_t replica = 0; replica < replicas; ++replica) waiting.missing.insert(replica);
  waiting_.emplace(++latest_, std::move(waiting));
  return latest_;
}

void TensorSummaries::Take(uint32_t replica, const SummaryReport& report,
                           Completions* completions) {
  const auto found = waiting_.find(report.number);
  if (found == waiting_.end() || found->second.missing.erase(replica) == 0) return;
  found->second.parts[replica] = report.part;
  if (!found->second.missing.empty()) return;
  completions->Add([whole = std::make_shared<const Waiting>(std::move(found->second))] {
    whole->done(SummaryOf(whole->tensor, whole->step, whole->parts));
  });
  waiting_.erase(found);
}

void TensorSummaries::Stop(const absl::Status& why, Completions* completions) {
  for (auto& [number, waiting] : waiting_) {
    completions->Add([done = std::move(waiting.done), why] { done(why); });
  }
  waiting_.clear();
}

}  // namespace sluice
