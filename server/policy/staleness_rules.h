// Decides what the server does about stale gradients.
//
// The choice `auto` follows from the mode and the optimizer alone. It need not change when workers
// come and go, because the rules measure what they depend on: the gap grows with the staleness,
// and momentum follows the number of workers. STALENESS.md in this folder explains
// the rules and cites their papers. The functions are pure.

#ifndef SLUICE_SERVER_POLICY_STALENESS_RULES_H_
#define SLUICE_SERVER_POLICY_STALENESS_RULES_H_

#include <string>

#include "absl/status/status.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"

namespace sluice {

// The rules in use.
struct StalenessRules {
  bool discount_stale = false;
  bool gap_aware = false;
  bool ordered_momentum = false;
  bool divided_momentum = false;
  std::string reason;  // for people

  bool any() const { return discount_stale || gap_aware || ordered_momentum || divided_momentum; }
  // "gap-aware and ordered-momentum (…)", with the reason.
  std::string ToString() const;
};

// OK, or BAD_OPTIMIZER if a rule is on that does not fit the optimizer. It says which would.
absl::Status CheckRules(const Consistency& consistency, const OptimizerConfig& optimizer);

// Both arguments are valid. A rule that does not fit the optimizer is not used, even if it is on;
// so it is where the rules were set before the optimizer was known, or are those of a checkpoint.
StalenessRules ChooseRules(const Consistency& consistency, const OptimizerConfig& optimizer);

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_STALENESS_RULES_H_
