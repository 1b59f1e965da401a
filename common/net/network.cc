#include "common/net/network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "common/base/error.h"

namespace sluice {
namespace {

struct InterfaceAddress {
  std::string interface;
  std::string host;
  bool ipv6 = false;
  bool loopback = false;

  std::string ToString() const { return absl::StrCat(interface, " (", host, ")"); }
};

absl::optional<InterfaceAddress> FromEntry(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return absl::nullopt;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return absl::nullopt;
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char host[NI_MAXHOST];
  if (getnameinfo(entry.ifa_addr, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) {
    return absl::nullopt;
  }
  InterfaceAddress address;
  address.interface = entry.ifa_name;
  address.host = host;
  address.ipv6 = family == AF_INET6;
  address.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  // A link-local address ("fe80::1%eth0") means nothing on another node.
  if (absl::StrContains(address.host, "%")) return absl::nullopt;
  return address;
}

// IPv4 addresses first, otherwise in the system's order.
std::vector<InterfaceAddress> ListAddresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* entries = nullptr;
  if (getifaddrs(&entries) != 0) return addresses;
  for (const ifaddrs* entry = entries; entry != nullptr; entry = entry->ifa_next) {
    const absl::optional<InterfaceAddress> address = FromEntry(*entry);
    if (address.has_value()) addresses.push_back(*address);
  }
  freeifaddrs(entries);
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const InterfaceAddress& a) { return !a.ipv6; });
  return addresses;
}

}  // namespace

absl::StatusOr<std::string> RoutableHost(absl::string_view interface) {
  const std::vector<InterfaceAddress> addresses = ListAddresses();
  for (const InterfaceAddress& address : addresses) {
    const bool wanted = interface.empty() ? !address.loopback : address.interface == interface;
    if (wanted) return address.host;
  }
  const std::string known =
      addresses.empty()
          ? "none"
          : absl::StrJoin(addresses, ", ", [](std::string* out, const InterfaceAddress& a) {
              out->append(a.ToString());
            });
  return MakeError(
      Reason::kBadArgument,
      interface.empty()
          ? absl::StrCat("no interface but loopback has an address, found: ", known,
                         "; name one with --interface, or the address with --advertise")
          : absl::StrCat("no interface \"", interface, "\" with an address, found: ", known));
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace sluice
