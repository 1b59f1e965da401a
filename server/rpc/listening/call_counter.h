// Tells the acceptor that many calls have begun, so that it judges the connections.

#ifndef SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_
#define SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>

#include "common/base/file_descriptor.h"

namespace sluice {

// May be used by any thread.
class CallCounter {
 public:
  // Called once for each call, before its method sees it.
  void Add() {
    constexpr uint64_t kCallsBetweenWakes = 512;
    if (count_.fetch_add(1, std::memory_order_relaxed) % kCallsBetweenWakes == 0) Wake();
  }

  // Readable when calls were added.
  const FileDescriptor& event() const { return event_; }
  void Wake() { eventfd_write(event_.get(), 1); }
  void Reset() {
    eventfd_t count = 0;
    eventfd_read(event_.get(), &count);
  }

 private:
  std::atomic<uint64_t> count_{0};
  const FileDescriptor event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_
