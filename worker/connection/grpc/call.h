// What every call of a worker has in common.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_CALL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sluice {

// Gives a call its deadline, unless `timeout` is infinite, and the job's token.
void Prepare(grpc::ClientContext& context, absl::Duration timeout, const std::string& token);

// How a call ended that this side did not cancel: the server's end does that to calls that are
// open.
absl::Status EndOf(const grpc::Status& status);

// The server's answer to `call` is not the one `expected`.
absl::Status UnexpectedMessage(absl::string_view call, absl::string_view expected);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_CALL_H_
