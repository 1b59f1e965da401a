// Reads secrets and certificates from files, so that they are not in a command line or the
// environment.

#ifndef SLUICE_COMMON_SECURITY_SECRET_FILE_H_
#define SLUICE_COMMON_SECURITY_SECRET_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// The largest file of a token, a key or certificates, in bytes.
inline constexpr uint64_t kMostSecretBytes = 1 << 20;

// Returns all bytes of a file that holds a secret. FAILED_PRECONDITION if other users may read it.
// Other errors are those of ReadSmallFile() (common/base/input_file.h).
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// Returns the file's first line. NOT_FOUND if it is empty, FAILED_PRECONDITION if it is not
// printable ASCII, which gRPC requires. Other errors are ReadPrivateFile()'s.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_SECRET_FILE_H_
