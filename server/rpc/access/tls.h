// Mutual TLS for the gRPC server. A caller's certificate has its roles.
//
// gRPC's C++ interface reads credential files at intervals, and accepts no connection while a new
// certificate does not match its key. Its C interface asks for credentials at each handshake, and
// keeps the previous ones after an error. So this unit uses the C interface.

#ifndef SLUICE_SERVER_RPC_ACCESS_TLS_H_
#define SLUICE_SERVER_RPC_ACCESS_TLS_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "common/security/credentials_source.h"

namespace sluice {

// The returned credentials ask `source` for a certificate at each new connection. If `source`
// fails, the error is logged and the previous credentials stay in use. A caller without a valid
// certificate that the authority signed fails in the handshake. What a caller's roles allow,
// checked_service.h checks. Keep the returned object as long as the gRPC server.
std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(CredentialsSource source);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_TLS_H_
