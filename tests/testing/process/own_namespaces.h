// Gives this process its own mounts and network (namespaces(7)). No other process sees them, and
// they are gone when this process has ended.

#ifndef SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_
#define SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_

#include "absl/status/status.h"

namespace sluice {

enum class OwnNamespaces { kMounts, kMountsAndNetwork };

// Moves this process, and those that it starts later, to new namespaces. Call it while the process
// has only one thread, so before it uses gRPC. If the user is not root, the process becomes root in
// a new user namespace, which gives it no rights outside. UNAVAILABLE says why the system refuses,
// and what would help.
absl::Status EnterOwnNamespaces(OwnNamespaces which);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_
