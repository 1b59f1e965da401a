// Cuts messages between servers that are too large for gRPC, and puts them together again.

#ifndef SLUICE_SERVER_RPC_SERVERS_MESSAGE_PARTS_H_
#define SLUICE_SERVER_RPC_SERVERS_MESSAGE_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/field.h"

namespace sluice {

inline constexpr size_t kLinkPartBytes = size_t{1} << 20;     // of one part
inline constexpr size_t kMaxLinkMessage = size_t{128} << 20;  // of all parts of one message

// Message is HolderMessage or SequencerMessage. Returns it, or its parts, which have its number.
template <typename Message>
std::vector<Message> CutMessage(Message message) {
  if (message.ByteSizeLong() <= kLinkPartBytes) return {std::move(message)};
  const std::string bytes = message.SerializeAsString();
  std::vector<Message> parts;
  for (size_t begin = 0; begin < bytes.size(); begin += kLinkPartBytes) {
    Message& part = parts.emplace_back();
    part.set_number(message.number());
    part.mutable_part()->set_bytes(bytes.substr(begin, kLinkPartBytes));
    part.mutable_part()->set_more(begin + kLinkPartBytes < bytes.size());
  }
  return parts;
}

// Externally synchronized. Its memory is bounded by kMaxLinkMessage, whatever a peer sends.
template <typename Message>
class MessageParts {
 public:
  // Takes the next message of a stream. Returns it, or the whole one whose last part it is; absent:
  // another part follows. BAD_ARGUMENT if the parts are no message.
  absl::StatusOr<absl::optional<Message>> Add(Message message) {
    if (number_ != 0 && (message.number() != number_ || !message.has_part())) {
      return MakeError(Reason::kBadArgument, absl::StrCat("message ", number_, " is not complete"));
    }
    if (!message.has_part()) return absl::make_optional(std::move(message));
    if (message.number() == 0) return BadField("number", "0", "that of the message");
    const std::string& bytes = message.part().bytes();
    if (bytes_.size() + bytes.size() > kMaxLinkMessage) {
      return BadField("part", absl::StrCat("part of more than ", kMaxLinkMessage, " bytes"),
                      "a smaller message");
    }
    bytes_ += bytes;
    number_ = message.part().more() ? message.number() : 0;
    if (number_ != 0) return absl::optional<Message>();
    return Whole(message.number());
  }

 private:
  absl::StatusOr<absl::optional<Message>> Whole(uint64_t number) {
    Message whole;
    const bool sound = whole.ParseFromString(std::exchange(bytes_, std::string()));
    if (sound && !whole.has_part() && whole.number() == number) {
      return absl::make_optional(std::move(whole));
    }
    return BadField("part", "no part of a message", "the bytes of one");
  }

  uint64_t number_ = 0;  // of the message that is not complete; 0: none
  std::string bytes_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_MESSAGE_PARTS_H_
