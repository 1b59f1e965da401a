// What a Coordinator asks its owner to do.

#ifndef SLUICE_SERVER_SHARD_NEXT_ACTION_H_
#define SLUICE_SERVER_SHARD_NEXT_ACTION_H_

#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "server/aggregation/contributions.h"

namespace sluice {

// What is to be done next for the step under way: a contribution to be added up, or the step to be
// made, with a last contribution if there is one, or nothing.
struct NextAction {
  absl::optional<Contribution> contribution;
  bool apply = false;
  bool checkpoint = false;  // instead of all else: an checkpoint is to be taken
  Consistency consistency;
  std::vector<double> learning_rates;  // see RuntimeSettings

  bool idle() const { return !contribution.has_value() && !apply && !checkpoint; }
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_NEXT_ACTION_H_
