#include "common/protocol/attachment.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status CheckAttachments(const Attachments& attachments) {
  if (attachments.size() > kMostAttachments) {
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("a push has ", attachments.size(), " attachments, expected at most ",
                     kMostAttachments, "; send the others with the next"));
  }
  size_t bytes = 0;
  for (const Attachment& attachment : attachments) {
    if (attachment.type.empty() || attachment.type.size() > kLongestAttachmentType) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("an attachment's type has ", attachment.type.size(),
                                    " bytes, expected 1 to ", kLongestAttachmentType));
    }
    bytes += attachment.data.size();
  }
  if (bytes <= kMostAttachedBytes) return absl::OkStatus();
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("the attachments of a push have ", bytes, " bytes together, expected at most ",
                   kMostAttachedBytes, "; store them elsewhere, and attach where"));
}

}  // namespace sluice
