// Mutual TLS at the server's door, and what a caller's certificate lets it do.
//
// gRPC's C++ credentials read their files by a timer, and serve nobody while a certificate and a
// key that are being replaced do not fit. Its C interface asks for credentials at each handshake
// instead, and goes on with the last ones if there are no better; so that is used here.

#ifndef SLUICE_SERVER_RPC_ACCESS_TLS_H_
#define SLUICE_SERVER_RPC_ACCESS_TLS_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "common/security/credentials_source.h"
#include "common/security/role.h"

namespace sluice {

// Asks `source` at each new connection: what it gives then is used from then on, and an error of
// its is logged. Callers without a certificate that the authority signed and that is valid get no
// further than the handshake; each call of the others is held against
// server/rpc/access/method_roles.h, and refused with PERMISSION_DENIED. Outlives the server it is
// added to.
std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(CredentialsSource source);

// Of the caller's certificate. All of them if the connection is none of TLS: then a token decides.
Roles RolesOf(const grpc::CallbackServerContext& context);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_TLS_H_
