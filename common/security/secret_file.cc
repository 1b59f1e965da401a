#include "common/security/secret_file.h"

#include <sys/stat.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/input_file.h"

namespace sluice {

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  const auto file = OpenInput(path);
  if (!file.ok()) return file.status();
  if ((file->facts.st_mode & (S_IRGRP | S_IROTH)) == 0) {
    return ReadInput(*file, path, kMostSecretBytes);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " can be read by other users; run chmod 600 ", path));
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  auto bytes = ReadPrivateFile(path);
  if (!bytes.ok()) return bytes.status();
  std::string secret = bytes->substr(0, bytes->find('\n'));
  if (secret.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, " is empty, expected a secret on its first line"));
  }
  if (!absl::c_all_of(secret, absl::ascii_isprint)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has a first line of more than printable ASCII characters, which no token holds"));
  }
  return secret;
}

}  // namespace sluice
