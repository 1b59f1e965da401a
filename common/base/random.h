// Randomness from the kernel, for names and secrets; never for training.

#ifndef SLUICE_COMMON_BASE_RANDOM_H_
#define SLUICE_COMMON_BASE_RANDOM_H_

#include <string>

#include "common/base/ids.h"

namespace sluice {

// `bytes` random bytes in lower-case hexadecimal.
std::string RandomHex(int bytes);

// Never 0.
ProcessNonce RandomNonce();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_RANDOM_H_
