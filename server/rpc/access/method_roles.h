// Which role may call what: the one table of every method that the server serves.
//
// It is asked at the door, before a method sees its call. What is not in the table nobody may call.

#ifndef SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_
#define SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/role.h"

namespace sluice {

// `method` is gRPC's path, "/sluice.v1.Admin/Drain". None for one that is not in the table.
Roles RolesThatMayCall(absl::string_view method);

// Whether a caller with those roles may call it; else WRONG_ROLE says which role it takes.
absl::Status CheckMay(Roles caller, absl::string_view method);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_METHOD_ROLES_H_
