#include "common/security/credentials_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace sluice {
namespace {

absl::Status CheckPrivate(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0) {
    return absl::OkStatus();  // a missing file is reported when it is read
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " can be read by other users; run chmod 600 ", path));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!file.is_open() || !(bytes << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", errno == 0 ? "it is empty" : strerror(errno)));
  }
  return bytes.str();
}

absl::StatusOr<Credentials> Read(const TlsFiles& files) {
  const absl::Status hidden = CheckPrivate(files.key);
  if (!hidden.ok()) return hidden;
  Credentials credentials;
  const std::pair<const std::string&, std::string*> parts[] = {
      {files.certificate, &credentials.certificate},
      {files.key, &credentials.key},
      {files.authority, &credentials.authority}};
  for (const auto& part : parts) {
    errno = 0;
    auto text = ReadFile(part.first);
    if (!text.ok()) return text.status();
    *part.second = *std::move(text);
  }
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
