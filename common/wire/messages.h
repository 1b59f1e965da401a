// Translates the values of common/protocol to the messages of parameter_server.proto, and back.
//
// The gRPC code of server and worker calls these functions, from any thread. A message may come
// from anyone, so FromProto() checks every field; its error names the field that is wrong
// (BAD_ARGUMENT, BAD_LAYOUT or BAD_OPTIMIZER). ToProto() cannot fail. The values do not have the
// messages' fields about shared memory, because the gRPC code handles those itself. The exception
// is JoinRequest::memory, which names the memory of the worker that joins.

#ifndef SLUICE_COMMON_WIRE_MESSAGES_H_
#define SLUICE_COMMON_WIRE_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/wire/layout.h"
#include "common/wire/optimizer.h"
#include "common/wire/push.h"
#include "common/wire/running_means.h"
#include "common/wire/settings.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

inline constexpr size_t kMaxWorkerName = 128;  // bytes
// Limits of PushPull; see parameter_server.proto. A header and a gradient of so many elements have
// fewer bytes.
inline constexpr uint64_t kMostPushPullElements = uint64_t{1} << 14;
inline constexpr size_t kMostPushPullBytes = size_t{1} << 19;

v1::JoinRequest ToProto(const JoinRequest& request);
absl::StatusOr<JoinRequest> FromProto(const v1::JoinRequest& message);

v1::SharedMemory ToProto(const SharedMemoryName& name);
SharedMemoryName FromProto(const v1::SharedMemory& message);

v1::Welcome ToProto(const Welcome& welcome);
absl::StatusOr<Welcome> FromProto(const v1::Welcome& message);

v1::JoinEvent ToProto(const JobEvent& event);
absl::StatusOr<JobEvent> FromProto(const v1::JoinEvent& message);  // any event except the welcome

v1::PullParamsRequest ToProto(const PullRequest& request);
PullRequest FromProto(const v1::PullParamsRequest& message);

v1::PullHeader ToProto(const PullHeader& header);
PullHeader FromProto(const v1::PullHeader& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_MESSAGES_H_
