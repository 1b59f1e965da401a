// Finds bytes that changed on their way.

#ifndef SLUICE_COMMON_ENCODING_CHECKSUM_H_
#define SLUICE_COMMON_ENCODING_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

// XXH3-64 with seed 0 (Collet, xxhash.com): a quarter of a pass over memory.
uint64_t Checksum(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_CHECKSUM_H_
