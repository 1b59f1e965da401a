// Finds the values with the largest magnitudes, for top-k.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// Returns the positions of the `kept` largest magnitudes, in ascending order. Of equal magnitudes
// the first ones win. NaN and infinity count as larger than all finite values. `kept` is at least 1
// and at most the number of values, which is below 2^32.
std::vector<uint32_t> FindLargest(absl::Span<const float> values, size_t kept);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_
