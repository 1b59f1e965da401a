// The versions of the protocol and of gRPC, for --version.

#ifndef SLUICE_COMMON_WIRE_VERSIONS_H_
#define SLUICE_COMMON_WIRE_VERSIONS_H_

#include <vector>

#include "common/base/version.h"

namespace sluice {

// The protocol's version is the name of its package: programs whose packages are named alike
// understand each other.
std::vector<BuiltWith> WireVersions();

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_VERSIONS_H_
