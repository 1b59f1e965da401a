// Attachments of a push to and from protobuf.

#ifndef SLUICE_COMMON_WIRE_ATTACHMENTS_H_
#define SLUICE_COMMON_WIRE_ATTACHMENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/attachment.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

void PutAttachments(const Attachments& attachments, v1::PushHeader* header);

// Null if it has none; errors are those of CheckAttachments().
absl::StatusOr<std::shared_ptr<const Attachments>> ReadAttachments(const v1::PushHeader& header);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_ATTACHMENTS_H_
