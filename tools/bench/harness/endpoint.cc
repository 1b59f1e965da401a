#include "tools/bench/harness/endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::bench {

absl::StatusOr<Endpoint> MakeEndpoint(SocketKind socket) {
  Endpoint endpoint;
  if (socket == SocketKind::kTcp) {
    endpoint.address.host = "127.0.0.1";
    return endpoint;
  }
  auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  endpoint.directory = *std::move(directory);
  endpoint.address.unix_path = absl::StrCat(endpoint.directory->path(), "/server.sock");
  return endpoint;
}

}  // namespace sluice::bench
