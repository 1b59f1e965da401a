#include "common/security/credentials_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/input_file.h"
#include "common/security/secret_file.h"

namespace sluice {
namespace {

// A file that cannot be read is as good as none.
absl::StatusOr<std::string> OrNotFound(absl::StatusOr<std::string> read) {
  const absl::StatusCode code = read.status().code();
  if (read.ok() || code == absl::StatusCode::kInvalidArgument ||
      code == absl::StatusCode::kFailedPrecondition) {
    return read;
  }
  return absl::NotFoundError(read.status().message());
}

absl::StatusOr<Credentials> Read(const TlsFiles& files) {
  auto certificate = OrNotFound(ReadSmallFile(files.certificate, kMostSecretBytes));
  if (!certificate.ok()) return certificate.status();
  auto key = OrNotFound(ReadPrivateFile(files.key));
  if (!key.ok()) return key.status();
  auto authority = OrNotFound(ReadSmallFile(files.authority, kMostSecretBytes));
  if (!authority.ok()) return authority.status();
  const Credentials credentials = {*std::move(certificate), *std::move(key), *std::move(authority)};
  const absl::Status fit = CheckCredentials(credentials, absl::Now());
  if (fit.ok()) return credentials;
  return absl::Status(fit.code(),
                      absl::StrCat("TLS credentials ", files.certificate, ", ", files.key, ", ",
                                   files.authority, ": ", fit.message()));
}

}  // namespace

CredentialsSource SourceOf(Credentials credentials) {
  return [credentials = std::move(credentials)] { return credentials; };
}

CredentialsSource SourceOf(TlsFiles files) {
  return [files = std::move(files)] { return Read(files); };
}

}  // namespace sluice
