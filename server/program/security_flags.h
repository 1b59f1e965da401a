// The flags by which a server and its workers, each for itself, choose between mutual TLS and
// plaintext.

#ifndef SLUICE_SERVER_PROGRAM_SECURITY_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_SECURITY_FLAGS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"

namespace CLI {
class App;
}

namespace sluice {

struct SecurityFlags {
  TlsFiles tls;
  bool insecure = false;
  bool insecure_on_network = false;
};

// Adds them to `group`. `flags` outlives the parsing.
void AddSecurityFlags(CLI::App& group, SecurityFlags& flags);

// Whether anything was said, so that nothing need be chosen.
bool ChoosesSecurity(const SecurityFlags& flags);

// The files that were named; empty if none was. INVALID_ARGUMENT if only some were, or --insecure
// as well.
absl::StatusOr<CredentialsSource> CredentialsFrom(const SecurityFlags& flags);

// What to speak at `address`: the files' credentials, or empty for plaintext, which wants loopback,
// a unix socket or --insecure-on-network, and warns of the last. Else INVALID_ARGUMENT says why.
absl::StatusOr<CredentialsSource> CredentialsAt(const SecurityFlags& flags, const Address& address);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SECURITY_FLAGS_H_
