// Questions to the system's sockets that gRPC does not answer.

#ifndef SLUICE_COMMON_PROBE_H_
#define SLUICE_COMMON_PROBE_H_

#include <string>

#include "common/address.h"

namespace sluice {

// Whether somebody listens on the unix socket `address`.
bool IsListening(const Address& address);

// Why `address` cannot be bound, in the system's words ("Address already in use").
std::string WhyNotBindable(const Address& address);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROBE_H_
