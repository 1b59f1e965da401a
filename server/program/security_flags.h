// The flags that choose between mutual TLS and plaintext. A server and each worker have their own.

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

// Declares the flags in `group`. `flags` must outlive the parsing.
void AddSecurityFlags(CLI::App& group, SecurityFlags& flags);

// Whether the user gave any of these flags.
bool ChoosesSecurity(const SecurityFlags& flags);

// Returns the credentials in the named files, or an empty source if no file is named.
// INVALID_ARGUMENT if only some of the files are named, or if --insecure is given too.
absl::StatusOr<CredentialsSource> CredentialsFrom(const SecurityFlags& flags);

// Returns the credentials to use at `address`, or an empty source for plaintext. Plaintext is
// allowed on loopback, on a unix socket, and with --insecure-on-network, which logs a warning.
// Otherwise INVALID_ARGUMENT gives the reason.
absl::StatusOr<CredentialsSource> CredentialsAt(const SecurityFlags& flags, const Address& address);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SECURITY_FLAGS_H_
