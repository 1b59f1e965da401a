// Where a side of a TLS connection takes its credentials from, each time it needs them.

#ifndef SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_
#define SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/certificates.h"

namespace sluice {

// Called for each new connection, from any thread. An empty one stands for plaintext.
using CredentialsSource = std::function<absl::StatusOr<Credentials>()>;

// Always the same.
CredentialsSource SourceOf(Credentials credentials);

// Names of PEM files.
struct TlsFiles {
  std::string certificate;  // of this side
  std::string key;
  std::string authority;  // that signs the other side's
};

// What the files hold now, so that they may be replaced while a job runs. The status, which names
// the file: NOT_FOUND if one cannot be read; FAILED_PRECONDITION if other users may read the key;
// INVALID_ARGUMENT if they do not belong together, or are not valid now.
CredentialsSource SourceOf(TlsFiles files);

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CREDENTIALS_SOURCE_H_
