// How fast this machine computes the cipher of TLS.

#ifndef SLUICE_COMMON_SECURITY_CIPHER_RATE_H_
#define SLUICE_COMMON_SECURITY_CIPHER_RATE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sluice {

// Bytes per second that one thread encrypts with AES-256-GCM, in records of 16 KiB as TLS 1.3 does,
// for about `time`. TLS also copies and frames them, so it is slower than this. `now` is the
// caller's clock. INTERNAL if OpenSSL has no such cipher.
absl::StatusOr<double> MeasureCipher(absl::Duration time, const std::function<absl::Time()>& now);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CIPHER_RATE_H_
