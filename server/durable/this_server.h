// The lock with which a server takes a directory for itself, and how it names itself there.

#ifndef SLUICE_SERVER_DURABLE_THIS_SERVER_H_
#define SLUICE_SERVER_DURABLE_THIS_SERVER_H_

#include <string>

#include "common/checkpoint/stripe_place.h"

namespace sluice {

// The name of the first server's lock. Another server's is LOCK-<its index>.
inline constexpr char kLockName[] = "LOCK";

// "process 12 on HOST, server 1 of 2 of job J". An empty job, and the only server, are left out.
std::string ThisServer(StripePlace place, const std::string& job_id);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_THIS_SERVER_H_
