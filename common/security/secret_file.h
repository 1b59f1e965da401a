// A secret kept in a file, so that it stands in no command line and no environment.

#ifndef SLUICE_COMMON_SECURITY_SECRET_FILE_H_
#define SLUICE_COMMON_SECURITY_SECRET_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// The file's first line, which must not be empty. NOT_FOUND if it cannot be read;
// FAILED_PRECONDITION if other users may read it, or if it holds more than printable ASCII, which
// gRPC cannot carry.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_SECRET_FILE_H_
