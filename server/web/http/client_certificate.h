// Who calls over TLS. The only code of the listener that uses GnuTLS.

#ifndef SLUICE_SERVER_WEB_HTTP_CLIENT_CERTIFICATE_H_
#define SLUICE_SERVER_WEB_HTTP_CLIENT_CERTIFICATE_H_

#include "common/security/role.h"

namespace sluice {

// The versions of TLS, and their ciphers, in GnuTLS' words.
inline constexpr char kTlsPriorities[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// The roles in the certificate of the caller at the other end of `session` (a gnutls_session_t).
// None if it has shown no certificate, or one that is not valid now, is not for clients, or that
// the session's authority has not signed.
Roles RolesOfCaller(void* session);

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_CLIENT_CERTIFICATE_H_
