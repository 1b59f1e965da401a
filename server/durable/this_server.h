// The file that a server locks, so that no other server uses its directory, and the text that it
// writes there about itself.

#ifndef SLUICE_SERVER_DURABLE_THIS_SERVER_H_
#define SLUICE_SERVER_DURABLE_THIS_SERVER_H_

#include <string>

#include "common/checkpoint/stripe_place.h"

namespace sluice {

// The name of the file that the leader, or the only server, locks. Replica i locks LOCK-<i>.
inline constexpr char kLockName[] = "LOCK";

// Describes this process: "process 12 on HOST, server 1 of 2 of job J". The text has no server if
// the job has one server, and no job if `job_id` is empty.
std::string ThisServer(StripePlace place, const std::string& job_id);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_THIS_SERVER_H_
