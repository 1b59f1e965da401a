// Several hosts with a network between them, all on this machine. A link can be cut in one
// direction.
//
// Each host is a network namespace with its own address. This process is the router: it reaches all
// hosts. While a link is cut, it drops what one host sends to the other and tells neither of them.
// Nothing leaves the machine.

#ifndef SLUICE_TESTS_TESTING_PROCESS_PRIVATE_NETWORK_H_
#define SLUICE_TESTS_TESTING_PROCESS_PRIVATE_NETWORK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/testing/process/process.h"

namespace sluice {

// Externally synchronized. The process must have entered a network of its own before, by
// EnterOwnNamespaces(); there is one PrivateNetwork in it at a time.
class PrivateNetwork {
 public:
  // UNAVAILABLE says which command failed, and how.
  static absl::StatusOr<std::unique_ptr<PrivateNetwork>> Make(int hosts);
  ~PrivateNetwork();

  // "10.77.1.2", of host 0.
  static std::string AddressOf(int host);

  // A command line that runs `argv` at a host.
  std::vector<std::string> At(int host, const std::vector<std::string>& argv) const;

  // What `from` sends to `to` is lost from now on; or arrives again.
  absl::Status Cut(int from, int to);
  absl::Status Heal(int from, int to);

 private:
  PrivateNetwork() = default;

  absl::Status AddHost();

  // Each holds a host's namespace, as long as it lives.
  std::vector<std::unique_ptr<Process>> hosts_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PRIVATE_NETWORK_H_
