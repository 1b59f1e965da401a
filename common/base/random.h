// Random numbers from the kernel, for names and secrets. Training never uses them.

#ifndef SLUICE_COMMON_BASE_RANDOM_H_
#define SLUICE_COMMON_BASE_RANDOM_H_

#include <string>

#include "common/base/ids.h"

namespace sluice {

// `bytes` random bytes in lower-case hexadecimal.
std::string RandomHex(int bytes);

// A random nonce, never 0.
ProcessNonce RandomNonce();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_RANDOM_H_
