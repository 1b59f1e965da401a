// The gradients that count towards the current step: how many there are, which one is accumulated
// next, and with which options of the optimizer the step is made.

#ifndef SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_
#define SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "server/aggregation/pending_push.h"

namespace sluice {

// A push that counts and is not accumulated yet. The stripe keeps its gradient.
struct Contribution {
  PushId push;
  PushHeader header;
  Rank rank;
  uint64_t staleness = 0;
};

// What a worker's program says of the optimizer's step.
struct StepOptions {
  SharedOptions changed;
  absl::optional<double> clip_norm;  // of the reduced gradient
};

// Externally synchronized.
class Contributions {
 public:
  // Adds a contribution. TakeNext() returns it when its turn comes.
  void Add(Contribution contribution, ReductionOrder order, absl::Time now);

  // Counts a worker whose gradient is left out of the sum.
  void Skip(absl::Time now);

  // Returns the contribution to be accumulated next, or nothing. In rank order a contribution waits
  // while a worker of lower rank may still contribute; `first_missing` is the lowest such rank.
  absl::optional<Contribution> TakeNext(ReductionOrder order,
                                        const absl::optional<Rank>& first_missing);

  // The contribution of that rank, which TakeNext() returned, is in the sum.
  void OnAccumulated(const Rank& rank);

  // In rank order: whether no contribution was taken, and one of this rank would be taken first.
  bool WouldBeFirst(const Rank& rank, const absl::optional<Rank>& first_missing) const;

  // Whether a contribution was added and not taken.
  bool HasWaiting() const { return !waiting_.empty(); }

  // Whether a contribution of `worker` is not in the sum yet, so that its memory is still read.
  bool IsAccumulating(const std::string& worker) const { return accumulating_.count(worker) > 0; }

  // Begins the next step. Every contribution has been taken.
  void Clear();

  // With what the step is made: that of the latest contribution of the lowest rank. Nothing if
  // there is no contribution yet.
  const StepOptions& options() const { return options_; }
  // With what the latest step of contributions was made.
  const StepOptions& latest_options() const { return latest_; }
  void RestoreLatest(SharedOptions changed) { latest_ = {std::move(changed), absl::nullopt}; }
  // Whose they are; absent if there is no contribution yet.
  const absl::optional<Rank>& lowest() const { return lowest_; }

  // Whether the step has no contribution and no skipped worker.
  bool empty() const { return accumulated_ == 0 && skipped_ == 0; }
  // The number of contributions, whether they are in the sum yet or not.
  uint32_t accumulated() const { return accumulated_; }
  uint32_t skipped() const { return skipped_; }
  // When the first contribution was added, or the first worker skipped.
  absl::optional<absl::Time> since() const { return since_; }

 private:
  using Turn = std::pair<Rank, uint64_t>;  // the number orders contributions of one rank

  std::map<Turn, Contribution> waiting_;
  std::multiset<std::string> accumulating_;  // workers with contributions not in the sum
  uint32_t accumulated_ = 0;
  uint32_t skipped_ = 0;
  absl::optional<absl::Time> since_;
  absl::optional<Rank> lowest_;
  StepOptions options_, latest_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_
