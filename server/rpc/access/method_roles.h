// Which roles may call which method: one table of all methods that the server serves.
//
// checked_service.h checks each call before the method sees it. For callers with a certificate, a
// method that is not in the table does not exist.

#ifndef SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_
#define SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/role.h"

namespace sluice {

// The roles that may call a method. `method` is gRPC's path: "/sluice.v1.Admin/Drain". No roles if
// it is not in the table.
Roles RolesThatMayCall(absl::string_view method);

// OK if a caller with these roles may call the method, for which one of the roles `may_call` is
// needed. Otherwise WRONG_ROLE names the needed role; NoSuchMethod() if there is none.
absl::Status CheckMay(Roles caller, absl::string_view method, Roles may_call);

// UNIMPLEMENTED. Clients such as grpcurl then try another method.
absl::Status NoSuchMethod(absl::string_view method);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_
