// What a worker's program sends along with a push, for a program of the server's to read: a few
// bytes, and the name of what they are. Sluice does not look into them.

#ifndef SLUICE_COMMON_PROTOCOL_ATTACHMENT_H_
#define SLUICE_COMMON_PROTOCOL_ATTACHMENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace sluice {

struct Attachment {
  std::string type;  // 1 to 64 bytes of UTF-8, for example "acme.BatchReport"
  std::string data;
};

using Attachments = std::vector<Attachment>;

// Of one push.
inline constexpr size_t kMostAttachments = 8;
inline constexpr size_t kLongestAttachmentType = 64;
inline constexpr size_t kMostAttachedBytes = 64 << 10;  // data of all together

// BAD_ARGUMENT if there are too many, or too large ones, or one without a type.
absl::Status CheckAttachments(const Attachments& attachments);

// Called with what came with a push of `worker`'s that counts, of a gradient computed on `step`;
// once, before the push is answered, from any thread, several at a time, and outside all locks. It
// must not block: the push's answer waits for it.
using AttachmentHook =
    std::function<void(const std::string& worker, Step step, const Attachments& attachments)>;

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_ATTACHMENT_H_
