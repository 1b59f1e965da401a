// The parts that all calls of a worker have in common: deadline, metadata, and the way they end.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_CALL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sluice {

// The metadata of a call.
struct CallMetadata {
  std::string token = {};     // the job token; empty if the server asks for none
  std::string model = {};     // the name of the model; empty: the model without a name
  bool begins_model = false;  // the call is a Join, which begins the model if it is not there
};

// Sets a call's deadline, unless `timeout` is infinite, and its metadata.
void Prepare(grpc::ClientContext& context, absl::Duration timeout, const CallMetadata& metadata);

// The status with which a call ended. CANCELLED becomes UNAVAILABLE, because a server that ends
// cancels its open calls; do not use it for a call that this side has cancelled.
absl::Status EndOf(const grpc::Status& status);

// The error for an answer to `call` that has no `expected` part.
absl::Status UnexpectedMessage(absl::string_view call, absl::string_view expected);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_CALL_H_
