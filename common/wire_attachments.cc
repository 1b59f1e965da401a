#include "common/wire_attachments.h"

namespace sluice {

void PutAttachments(const Attachments& attachments, v1::PushHeader* header) {
  for (const Attachment& attachment : attachments) {
    v1::Attachment& message = *header->add_attachments();
    message.set_type(attachment.type);
    message.set_data(attachment.data);
  }
}

absl::StatusOr<std::shared_ptr<const Attachments>> ReadAttachments(const v1::PushHeader& header) {
  if (header.attachments().empty()) return nullptr;
  const auto attachments = std::make_shared<Attachments>();
  for (const v1::Attachment& message : header.attachments()) {
    attachments->push_back({message.type(), message.data()});
  }
  const absl::Status sound = CheckAttachments(*attachments);
  if (!sound.ok()) return sound;
  return std::shared_ptr<const Attachments>(attachments);
}

}  // namespace sluice
