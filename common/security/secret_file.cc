#include "common/security/secret_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sluice {

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
  }
  if ((info.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " can be read by other users; run chmod 600 ", path));
  }
  std::ifstream file(path);
  std::string secret;
  if (!std::getline(file, secret) || secret.empty()) {
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
