// Reads from a call who the caller is: the job's token, and the roles in the caller's certificate.

#ifndef SLUICE_COMMON_WIRE_CALLER_H_
#define SLUICE_COMMON_WIRE_CALLER_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "common/security/role.h"

namespace sluice {

// OK if `token` is empty or equals the token in the call's metadata, otherwise BAD_TOKEN. Takes the
// same time for every wrong token of the right length, so that its time tells nothing.
absl::Status CheckToken(const grpc::ServerContextBase& context, const std::string& token);

// The roles in the caller's certificate. All roles if the connection does not use TLS; then only
// the token decides.
Roles RolesOf(const grpc::ServerContextBase& context);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_CALLER_H_
