// One end of a link between two servers, over calls that break: numbers what it sends, keeps it
// until the other end has taken it, and acknowledges what it has taken itself. sequencer.proto has
// the rules.

#ifndef SLUICE_SERVER_RPC_SERVERS_LINK_END_H_
#define SLUICE_SERVER_RPC_SERVERS_LINK_END_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/wire/field.h"
#include "server/replica/ordered_messages.h"
#include "server/rpc/servers/message_parts.h"

namespace sluice {

// Where a link's messages go while a call is open.
template <typename Message>
class MessageWriter {
 public:
  virtual ~MessageWriter() = default;
  // Writes it after those before. Does not wait.
  virtual void Write(std::shared_ptr<const Message> message) = 0;
};

// Externally synchronized. Message is what it sends: HolderMessage or SequencerMessage.
template <typename Message>
class LinkEnd {
 public:
  // It acknowledges at the latest after so many messages.
  static constexpr uint64_t kMostUnacknowledged = 64;

  // Numbers a message and sends it, now or when a call is open.
  void Send(Message message) {
    message.set_number(sender_.last() + 1);
    message.set_taken(Acknowledged());
    Parts parts;
    for (Message& part : CutMessage(std::move(message))) {
      parts.push_back(std::make_shared<const Message>(std::move(part)));
    }
    for (const auto& part : sender_.Add(std::move(parts)).message) Write(part);
  }

  // A call is open, and the other end has taken the messages up to `taken`. Sends the others again.
  // BAD_ARGUMENT if there are not so many; then the call is of no use. `writer` is valid until
  // End().
  absl::Status Begin(MessageWriter<Message>& writer, uint64_t taken) {
    const absl::Status heard = Hear(taken);
    if (!heard.ok()) return heard;
    writer_ = &writer;
    for (const auto& kept : sender_.kept()) {
      for (const auto& part : kept.message) Write(part);
    }
    return absl::OkStatus();
  }
  void End() { writer_ = nullptr; }

  // The other end has taken the messages up to `taken`. BAD_ARGUMENT if there are not so many.
  absl::Status Hear(uint64_t taken) {
    if (taken > sender_.last()) {
      return BadField("taken", absl::StrCat(taken),
                      absl::StrCat("at most ", sender_.last(), ", which were sent"));
    }
    sender_.Acknowledge(taken);
    return absl::OkStatus();
  }

  // Whether a message is the next one, which the caller now takes.
  bool Take(uint64_t number) {
    if (!receiver_.Take(number)) return false;
    if (receiver_.taken() - acknowledged_ >= kMostUnacknowledged) Acknowledge();
    return true;
  }

  // Sends what was taken, unless the other end was told so.
  void Acknowledge() {
    if (acknowledged_ != receiver_.taken()) Tell(Message());
  }

  // Sends a message without a number if a call is open. It is lost if the call breaks. Returns
  // whether a call is open.
  bool Tell(Message message) {
    if (writer_ == nullptr) return false;
    message.set_taken(Acknowledged());
    writer_->Write(std::make_shared<const Message>(std::move(message)));
    return true;
  }

  uint64_t taken() const { return receiver_.taken(); }
  uint64_t sent() const { return sender_.last(); }
  size_t kept() const { return sender_.kept().size(); }  // messages that are not acknowledged

 private:
  using Parts = std::vector<std::shared_ptr<const Message>>;

  uint64_t Acknowledged() {
    if (writer_ != nullptr) acknowledged_ = receiver_.taken();
    return receiver_.taken();
  }
  void Write(const std::shared_ptr<const Message>& message) {
    if (writer_ != nullptr) writer_->Write(message);
  }

  OrderedSender<Parts> sender_;
  OrderedReceiver receiver_;
  uint64_t acknowledged_ = 0;  // what the other end was told
  MessageWriter<Message>* writer_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_LINK_END_H_
