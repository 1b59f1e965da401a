// Finds out why an address cannot be listened on, which gRPC does not report.

#ifndef SLUICE_COMMON_NET_BIND_CHECK_H_
#define SLUICE_COMMON_NET_BIND_CHECK_H_

#include <string>

#include "common/net/address.h"

namespace sluice {

// Tries to bind the TCP address, and returns the system's message, such as "Address already in
// use".
std::string WhyNotBindable(const Address& address);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_BIND_CHECK_H_
