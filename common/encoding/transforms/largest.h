// Which of many values are the largest.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// The places of the `kept` largest magnitudes, in ascending order; of equal ones, the first. What
// is not finite is larger than all that is. `kept` is at least 1 and at most the number of values,
// which is below 2^32.
std::vector<uint32_t> FindLargest(absl::Span<const float> values, size_t kept);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_LARGEST_H_
