// What every call of a worker carries.

#ifndef SLUICE_WORKER_GRPC_CALL_H_
#define SLUICE_WORKER_GRPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sluice {

// Gives a call its deadline, unless `timeout` is infinite, and the job's token.
inline void Prepare(grpc::ClientContext& context, absl::Duration timeout,
                    const std::string& token) {
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

}  // namespace sluice

#endif  // SLUICE_WORKER_GRPC_CALL_H_
