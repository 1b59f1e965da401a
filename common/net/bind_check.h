// A question to the system's sockets that gRPC does not answer.

#ifndef SLUICE_COMMON_NET_BIND_CHECK_H_
#define SLUICE_COMMON_NET_BIND_CHECK_H_

#include <string>

#include "common/net/address.h"

namespace sluice {

// Why `address`, of TCP, cannot be listened on, in the system's words ("Address already in use").
std::string WhyNotBindable(const Address& address);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_BIND_CHECK_H_
