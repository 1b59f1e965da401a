// Delivers each message once and in order over connections that break: the two ends of one
// direction of a link.
//
// The sender numbers its messages from 1, and keeps each until the receiver has acknowledged it. On
// a new connection it sends all that it keeps. The receiver takes the message that follows the
// latest. It ignores one that it has had, and one after a gap, which is sent again.

#ifndef SLUICE_SERVER_REPLICA_ORDERED_MESSAGES_H_
#define SLUICE_SERVER_REPLICA_ORDERED_MESSAGES_H_

#include <cstdint>
#include <deque>
#include <utility>

namespace sluice {

// Externally synchronized.
template <typename Message>
class OrderedSender {
 public:
  struct Numbered {
    uint64_t number = 0;
    Message message;
  };

  // Numbers a message, which is then to be sent. The reference is valid until it is acknowledged.
  const Numbered& Add(Message message) {
    kept_.push_back({++last_, std::move(message)});
    return kept_.back();
  }

  // The receiver has taken all messages up to this one.
  void Acknowledge(uint64_t number) {
    while (!kept_.empty() && kept_.front().number <= number) kept_.pop_front();
  }

  // The number of the latest message; 0: none was added.
  uint64_t last() const { return last_; }

  // What to send on a new connection, in order.
  const std::deque<Numbered>& kept() const { return kept_; }

 private:
  uint64_t last_ = 0;
  std::deque<Numbered> kept_;
};

// Externally synchronized.
class OrderedReceiver {
 public:
  // Whether this message is the next one, which the caller now takes.
  bool Take(uint64_t number);

  // To be acknowledged: all messages up to this one are taken.
  uint64_t taken() const { return taken_; }

 private:
  uint64_t taken_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_ORDERED_MESSAGES_H_
