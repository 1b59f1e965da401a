// Checks the job token, which callers of the ParameterServer and of Admin must present.

#ifndef SLUICE_SERVER_RPC_ACCESS_TOKEN_H_
#define SLUICE_SERVER_RPC_ACCESS_TOKEN_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"

namespace sluice {

// OK if `token` is empty or equals the token in the call's metadata, otherwise BAD_TOKEN. Takes the
// same time for every wrong token of the right length, so that its time tells nothing.
absl::Status CheckToken(const grpc::CallbackServerContext& context, const std::string& token);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_TOKEN_H_
