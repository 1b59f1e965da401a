// What a certificate says of itself, and which one a server shows. For people; nothing is trusted
// because of it.

#ifndef SLUICE_COMMON_SECURITY_CERTIFICATE_FACTS_H_
#define SLUICE_COMMON_SECURITY_CERTIFICATE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/certificates.h"
#include "common/security/role.h"

namespace sluice {

struct CertificateFacts {
  Validity validity;
  std::vector<std::string> hosts;  // names and numeric addresses for which it stands
  Roles roles;
  bool may_serve = false;  // its extended key usage, if it has one, allows a server
  bool may_call = false;   // the same for a client
};

// Of the first certificate in `pem`. INVALID_ARGUMENT if there is none.
absl::StatusOr<CertificateFacts> FactsOf(const std::string& pem);

// Whether the first certificate in `pem` stands for `host`, a name or a numeric address.
bool StandsFor(const std::string& pem, const std::string& host);

// The certificate, as PEM, that the server at the other end of a connected TCP socket shows. Begins
// a TLS handshake on the socket, which cannot be used after. The socket should have timeouts, and
// the process must ignore SIGPIPE. UNAVAILABLE if the server speaks no TLS.
absl::StatusOr<std::string> CertificateShownAt(int socket);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CERTIFICATE_FACTS_H_
