// How many vectors the pushes in flight may hold (in_flight_limit.h).

#ifndef SLUICE_SERVER_ADMISSION_IN_FLIGHT_CAPACITY_H_
#define SLUICE_SERVER_ADMISSION_IN_FLIGHT_CAPACITY_H_

#include <cstdint>

#include "common/protocol/consistency.h"
#include "common/tensor/layout.h"
#include "server/state/shard_options.h"

namespace sluice {

// Returns how many the memory of `options` holds, but at least InFlightLimit::kFewest. With
// ShardOptions::ample_in_flight it returns no more than are of use.
uint32_t InFlightCapacity(const Layout& layout, const ShardOptions& options,
                          const Consistency& consistency);

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_IN_FLIGHT_CAPACITY_H_
