// Where one side of TLS connections takes its credentials from, for each new connection.

#ifndef SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_
#define SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/certificates.h"

namespace sluice {

// Called for each new connection, from any thread. An empty source means plaintext.
using CredentialsSource = std::function<absl::StatusOr<Credentials>()>;

// Returns the same credentials every time.
CredentialsSource SourceOf(Credentials credentials);

// Names of PEM files.
struct TlsFiles {
  std::string certificate;  // of this side
  std::string key;
  std::string authority;  // of the other side's certificates
};

// Reads the files every time, so that they may be replaced while a job runs. Its errors name the
// file: NOT_FOUND if a file cannot be read; FAILED_PRECONDITION if other users may read the key;
// INVALID_ARGUMENT if the files do not belong together or are not valid now.
CredentialsSource SourceOf(TlsFiles files);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_
