// This node's address and name.

#ifndef SLUICE_COMMON_NET_NETWORK_H_
#define SLUICE_COMMON_NET_NETWORK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// The numeric address at which other nodes reach this one. It is an address of `interface`; if that
// is empty, of the first interface that is up and not loopback. IPv4 is preferred to IPv6.
// BAD_ARGUMENT, if there is none, lists the interfaces that have an address.
absl::StatusOr<std::string> RoutableHost(absl::string_view interface);

// This node's name, shown to people.
std::string HostName();

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_NETWORK_H_
