// A network of several simulated hosts on this machine. A test can cut the link between two hosts
// in one direction.
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

// Externally synchronized. Call EnterOwnNamespaces() with kMountsAndNetwork first. A process has at
// most one PrivateNetwork at a time.
class PrivateNetwork {
 public:
  // Makes a network of `hosts` hosts. UNAVAILABLE names the command that failed, and its error.
  static absl::StatusOr<std::unique_ptr<PrivateNetwork>> Make(int hosts);
  ~PrivateNetwork();

  // The IPv4 address of a host, for example "10.77.1.2" for host 0.
  static std::string AddressOf(int host);

  // A command line that runs `argv` on a host.
  std::vector<std::string> At(int host, const std::vector<std::string>& argv) const;

  // After Cut(), what host `from` sends to host `to` is lost, until Heal().
  absl::Status Cut(int from, int to);
  absl::Status Heal(int from, int to);

 private:
  PrivateNetwork() = default;

  absl::Status AddHost();

  // One process for each host. The host's namespace exists as long as its process runs.
  std::vector<std::unique_ptr<Process>> hosts_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PRIVATE_NETWORK_H_
