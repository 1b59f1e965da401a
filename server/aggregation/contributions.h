// What counts towards the step under way, until it is added up.

#ifndef SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_
#define SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "server/aggregation/pending_push.h"

namespace sluice {

// A worker's place in the order of ranks: its index; workers of one index go by name.
using Rank = std::pair<uint32_t, std::string>;

// A push that counts, on its way into the sum.
struct Contribution {
  std::unique_ptr<PendingPush> push;
  Rank rank;
  uint64_t staleness = 0;
};

// Externally synchronized.
class Contributions {
 public:
  // Enters a contribution, to be added up when its turn comes.
  void Add(Contribution contribution, ReductionOrder order, absl::Time now);

  // Enters a worker whose gradient is left out.
  void Skip(absl::Time now);

  // The next to be added up. In the order of ranks none goes before `first_missing`, the lowest
  // rank that may still contribute.
  absl::optional<Contribution> TakeNext(ReductionOrder order,
                                        const absl::optional<Rank>& first_missing);

  // What was taken with that rank is in the sum.
  void OnAccumulated(const Rank& rank);

  // Whether something was entered that was not taken.
  bool HasWaiting() const { return !waiting_.empty(); }

  // Whether something of `worker` was entered that is not in the sum yet: its gradient is read.
  bool IsAccumulating(const std::string& worker) const { return accumulating_.count(worker) > 0; }

  // The step was made, or begins anew. Everything was taken.
  void Clear();

  // Whether nothing counts towards the step yet.
  bool empty() const { return accumulated_ == 0 && skipped_ == 0; }
  uint32_t accumulated() const { return accumulated_; }
  uint32_t skipped() const { return skipped_; }
  // When the first was entered.
  absl::optional<absl::Time> since() const { return since_; }

 private:
  using Turn = std::pair<Rank, uint64_t>;  // the number tells contributions of one worker apart

  std::map<Turn, Contribution> waiting_;
  std::multiset<std::string> accumulating_;  // whose contributions are not in the sum yet
  uint32_t accumulated_ = 0;
  uint32_t skipped_ = 0;
  absl::optional<absl::Time> since_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_CONTRIBUTIONS_H_
