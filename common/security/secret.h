// Functions for secrets in memory.

#ifndef SLUICE_COMMON_SECURITY_SECRET_H_
#define SLUICE_COMMON_SECURITY_SECRET_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// Whether `a` equals `b`. For texts of the right length, the time does not depend on their content.
bool SameSecret(absl::string_view a, absl::string_view b);

// Overwrites `secret` with zeros, in a way that the compiler cannot remove, and empties it.
void Wipe(std::string& secret);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_SECRET_H_
