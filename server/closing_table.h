// The table that a server prints when its job is over.

#ifndef SLUICE_SERVER_CLOSING_TABLE_H_
#define SLUICE_SERVER_CLOSING_TABLE_H_

#include <string>

#include "common/exchange.h"
#include "server/shard_state.h"

namespace sluice {

// Steps, pushes by disposition, megabytes moved, seconds per step, and what the workers reported.
// Several lines, each ended.
std::string ClosingTable(const ShardState& state, const Results& results);

}  // namespace sluice

#endif  // SLUICE_SERVER_CLOSING_TABLE_H_
