#include "server/aggregation/contributions.h"

#include <utility>

namespace sluice {

void Contributions::Add(Contribution contribution, ReductionOrder order, absl::Time now) {
  ++accumulated_;
  if (!since_.has_value()) since_ = now;
  accumulating_.insert(contribution.rank.second);
  if (!lowest_.has_value() || contribution.rank <= *lowest_) {
    lowest_ = contribution.rank;
    options_ = {contribution.header.options, contribution.header.clip_norm};
  }
  // In arrival order all ranks are equal, so that the number decides.
  const Rank rank = order == ReductionOrder::kRank ? contribution.rank : Rank();
  waiting_.emplace(Turn(rank, accumulated_), std::move(contribution));
}

void Contributions::Skip(absl::Time now) {
  ++skipped_;
  if (!since_.has_value()) since_ = now;
}

absl::optional<Contribution> Contributions::TakeNext(ReductionOrder order,
                                                     const absl::optional<Rank>& first_missing) {
  const auto first = waiting_.begin();
  if (first == waiting_.end()) return absl::nullopt;
  const bool waits = order == ReductionOrder::kRank && first_missing.has_value() &&
                     *first_missing < first->second.rank;
  if (waits) return absl::nullopt;
  absl::optional<Contribution> next = std::move(first->second);
  waiting_.erase(first);
  return next;
}

bool Contributions::WouldBeFirst(const Rank& rank,
                                 const absl::optional<Rank>& first_missing) const {
  const bool none_taken = waiting_.size() == accumulated_;
  const bool before_all = waiting_.empty() || rank < waiting_.begin()->second.rank;
  // While workers have not joined, the first that is missing has index 0 and no name.
  return none_taken && before_all && first_missing.has_value() &&
         first_missing->first == rank.first;
}

void Contributions::OnAccumulated(const Rank& rank) {
  const auto one = accumulating_.find(rank.second);
  if (one != accumulating_.end()) accumulating_.erase(one);
}

void Contributions::Clear() {
  accumulated_ = 0;
  skipped_ = 0;
  since_.reset();
  if (lowest_.has_value()) latest_ = std::exchange(options_, StepOptions());
  lowest_.reset();
}

}  // namespace sluice
