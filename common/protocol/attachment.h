// Attachments: a few bytes that a worker's program sends with a push, for the program that serves.
// Sluice does not read them.

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

// The limits of one push.
inline constexpr size_t kMostAttachments = 8;
inline constexpr size_t kLongestAttachmentType = 64;
inline constexpr size_t kMostAttachedBytes = 64 << 10;  // data of all attachments together

// BAD_ARGUMENT if there are too many attachments, if one is too large, or if one has no type.
absl::Status CheckAttachments(const Attachments& attachments);

// Called on the server once for each push with attachments that counts. `step` is the step on which
// the gradient was computed. It is called before the push is answered, from any thread, for several
// pushes at once, and outside all locks. It must not block, because the answer waits for it.
using AttachmentHook =
    std::function<void(const std::string& worker, Step step, const Attachments& attachments)>;

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_ATTACHMENT_H_
