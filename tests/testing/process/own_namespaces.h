// Gives this process mounts and a network that no other process sees and that end with it
// (namespaces(7)).

#ifndef SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_
#define SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_

#include "absl/status/status.h"

namespace sluice {

enum class OwnNamespaces { kMounts, kMountsAndNetwork };

// Moves this process, and those that it starts later, to namespaces of its own. It must have one
// thread yet: gRPC, for one, makes more. As another user than root it becomes root in a user
// namespace of its own, which gives it no rights outside. UNAVAILABLE says why the system does not
// let it, and what would help.
absl::Status EnterOwnNamespaces(OwnNamespaces which);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_OWN_NAMESPACES_H_
