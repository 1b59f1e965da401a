// Functions for secrets in memory.

#ifndef SLUICE_COMMON_SECURITY_SECRET_H_
#define SLUICE_COMMON_SECURITY_SECRET_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// Whether `a` equals `b`. Takes the same time for every wrong word of the right length.
bool SameSecret(absl::string_view a, absl::string_view b);

// Overwrites `secret` with zeros, in a way that the compiler cannot remove, and empties it.
void Wipe(std::string& secret);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_SECRET_H_
