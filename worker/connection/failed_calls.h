// Calls that fail for a reason that is known before they start.

#ifndef SLUICE_WORKER_CONNECTION_FAILED_CALLS_H_
#define SLUICE_WORKER_CONNECTION_FAILED_CALLS_H_

#include <memory>

#include "absl/status/status.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// They send and write nothing, and end with `why`, which is an error.
std::unique_ptr<OutgoingPush> FailedPush(const absl::Status& why);
std::unique_ptr<PendingPull> FailedPull(const absl::Status& why);
std::unique_ptr<PendingOffer> FailedOffer(const absl::Status& why);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_FAILED_CALLS_H_
