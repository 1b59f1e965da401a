// Creates the directory of checkpoints.

#ifndef SLUICE_SERVER_DURABLE_MAKE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_MAKE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace sluice {

// With its parents; nothing happens if it is there. UNAVAILABLE says why it cannot be made.
absl::Status MakeDirectory(const std::string& directory);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_MAKE_DIRECTORY_H_
