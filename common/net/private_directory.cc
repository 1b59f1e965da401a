#include "common/net/private_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// mkdtemp makes the directory with mode 0700, whatever the umask. Empty on failure.
std::string MakeUnder(const std::string& parent) {
  std::string path = parent + "/sluice-XXXXXX";
  return mkdtemp(path.data()) == nullptr ? "" : path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateDirectory>> PrivateDirectory::Create() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  std::string path;
  if (runtime != nullptr && runtime[0] == '/') path = MakeUnder(runtime);
  if (path.empty()) path = MakeUnder("/tmp");
  if (path.empty()) {
    return absl::UnavailableError(
        absl::StrCat("cannot make a private directory under /tmp: ", strerror(errno),
                     "; free space there, or use --listen"));
  }
  return std::unique_ptr<PrivateDirectory>(new PrivateDirectory(std::move(path)));
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;  // a destructor cannot report it
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sluice
