// Reads a secret from a file, so that it is not in a command line or the environment.

#ifndef SLUICE_COMMON_SECURITY_SECRET_FILE_H_
#define SLUICE_COMMON_SECURITY_SECRET_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// Returns the file's first line. NOT_FOUND if the file cannot be read or the line is empty;
// FAILED_PRECONDITION if other users may read the file, or if the line is not printable ASCII,
// which gRPC requires.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_SECRET_FILE_H_
