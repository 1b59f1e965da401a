// The versions of the protocol: what --version says of them, and which ones fit together.

#ifndef SLUICE_COMMON_WIRE_VERSIONS_H_
#define SLUICE_COMMON_WIRE_VERSIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/version.h"

namespace sluice {

// The name of the protocol's package, and the version of gRPC. Programs whose packages have one
// name understand each other, as far as their revisions fit.
std::vector<BuiltWith> WireVersions();

// Revisions of the protocol. A revision begins where one side must know what the other one knows;
// a field that may be ignored begins none. 0 is that of programs that tell none.
struct Revisions {
  uint32_t oldest = 0;
  uint32_t newest = 4;
};

// The revisions that this program's server serves.
inline constexpr Revisions kServedRevisions;
// A worker of this program states `newest`, and needs a server of `oldest` or later. It joins a
// server of revision 3, too: it has no use for 4 before its program changes options.
inline constexpr Revisions kWorkerRevisions = {0, 3};
// A server of this one or later takes PushHeader.changed_options and clip_norm.
inline constexpr uint32_t kTakesOptions = 4;

// The server's check of a worker that states `revision` and the version `version` of Sluice.
// VERSION_MISMATCH names both sides' versions, and the side to upgrade.
absl::Status CheckWorkerRevision(const Revisions& served, uint32_t revision,
                                 absl::string_view version);

// The worker's check of a server, in the same way.
absl::Status CheckServerRevision(const Revisions& own, uint32_t revision,
                                 absl::string_view version);

// What the server's log says of a worker with another version of Sluice than this program's; empty
// if it has the same, or tells none. `version` comes from the peer.
std::string OtherVersion(absl::string_view worker, absl::string_view version);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_VERSIONS_H_
