#include "server/private_socket.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::StatusOr<PrivateSocket> ChoosePrivateSocket(const std::string& directory) {
  PrivateSocket socket;
  std::string path = directory;
  if (path.empty()) {
    auto made = PrivateDirectory::Create();
    if (!made.ok()) return made.status();
    socket.directory = *std::move(made);
    path = socket.directory->path();
  }
  socket.address.unix_path = absl::StrCat(path, "/server.sock");
  return socket;
}

}  // namespace sluice
