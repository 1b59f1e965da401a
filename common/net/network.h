// This node, as others see it.

#ifndef SLUICE_COMMON_NET_NETWORK_H_
#define SLUICE_COMMON_NET_NETWORK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// The numeric address by which other nodes reach this one: that of `interface` if it is not empty,
// else of the first interface that is up and not loopback; IPv4 before IPv6. BAD_ARGUMENT lists the
// interfaces that have an address.
absl::StatusOr<std::string> RoutableHost(absl::string_view interface);

// This node's name, for people.
std::string HostName();

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_NETWORK_H_
