// A unix socket in a private directory: where a server listens that is given no address.

#ifndef SLUICE_SERVER_PRIVATE_SOCKET_H_
#define SLUICE_SERVER_PRIVATE_SOCKET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/address.h"
#include "common/net/private_directory.h"

namespace sluice {

struct PrivateSocket {
  Address address;
  std::unique_ptr<PrivateDirectory> directory;  // removed with it; null if it was given
};

// In `directory`, or in a new one if that is empty. Errors are PrivateDirectory's.
absl::StatusOr<PrivateSocket> ChoosePrivateSocket(const std::string& directory);

}  // namespace sluice

#endif  // SLUICE_SERVER_PRIVATE_SOCKET_H_
