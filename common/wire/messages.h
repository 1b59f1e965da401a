// The translator: what worker and server say, to and from the messages of parameter_server.proto.
//
// Messages may come from anyone: From… functions check every field and name the one that is wrong
// (BAD_ARGUMENT, BAD_LAYOUT, BAD_OPTIMIZER). To… functions cannot fail. Who shares memory with whom
// is the doors' own affair: what messages say of that is not in the values, but for its owner's
// JoinRequest::memory.

#ifndef SLUICE_COMMON_WIRE_MESSAGES_H_
#define SLUICE_COMMON_WIRE_MESSAGES_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/wire/optimizer.h"
#include "common/wire/push.h"
#include "common/wire/settings.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

inline constexpr size_t kMaxWorkerName = 128;  // bytes

v1::JoinRequest ToProto(const JoinRequest& request);
absl::StatusOr<JoinRequest> FromProto(const v1::JoinRequest& message);

v1::SharedMemory ToProto(const SharedMemoryName& name);
SharedMemoryName FromProto(const v1::SharedMemory& message);

v1::Welcome ToProto(const Welcome& welcome);
absl::StatusOr<Welcome> FromProto(const v1::Welcome& message);

v1::JoinEvent ToProto(const JobEvent& event);
absl::StatusOr<JobEvent> FromProto(const v1::JoinEvent& message);  // any but the welcome

v1::PullParamsRequest ToProto(const PullRequest& request);
PullRequest FromProto(const v1::PullParamsRequest& message);

v1::PullHeader ToProto(const PullHeader& header);
PullHeader FromProto(const v1::PullHeader& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_MESSAGES_H_
