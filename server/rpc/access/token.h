// The job's token, which calls must present.

#ifndef SLUICE_SERVER_RPC_ACCESS_TOKEN_H_
#define SLUICE_SERVER_RPC_ACCESS_TOKEN_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"

namespace sluice {

// OK if `token` is empty or the call's; else BAD_TOKEN. Takes the same time for every wrong token
// of that length.
absl::Status CheckToken(const grpc::CallbackServerContext& context, const std::string& token);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_TOKEN_H_
