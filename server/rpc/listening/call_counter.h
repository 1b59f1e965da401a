// Tells the acceptor that many calls have begun, so that it judges the connections.

#ifndef SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_
#define SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_

#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/file_descriptor.h"

namespace sluice {

// May be used by any thread.
class CallCounter {
 public:
  // Called once for each call, when its metadata have arrived. The first call wakes the acceptor,
  // too.
  void Add() {
    if (left_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      left_.store(between_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      Wake();
    }
  }

  // Sets how many calls begin before the acceptor is woken: at least 512, and 16 for each
  // connection. All connections are judged then, so the cost of that for each call stays the same
  // with any number of connections.
  void SetConnections(size_t connections) {
    constexpr int64_t kFewest = 512;
    constexpr int64_t kOfEach = 16;
    between_.store(std::max(kFewest, kOfEach * static_cast<int64_t>(connections)),
                   std::memory_order_relaxed);
  }

  // Readable when calls were added.
  const FileDescriptor& event() const { return event_; }
  void Wake() { eventfd_write(event_.get(), 1); }
  void Reset() {
    eventfd_t count = 0;
    eventfd_read(event_.get(), &count);
  }

 private:
  std::atomic<int64_t> between_{512};
  std::atomic<int64_t> left_{1};
  const FileDescriptor event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

// Counts the calls of a gRPC server: gRPC asks it for the context of each call, on the thread that
// reads the connection. It leaves the context to gRPC. `counter` outlives it.
class CountedContexts final : public grpc::ContextAllocator {
 public:
  explicit CountedContexts(CallCounter& counter) : counter_(counter) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override { return Count(); }
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override { return Count(); }

 private:
  std::nullptr_t Count() {
    counter_.Add();
    return nullptr;
  }

  CallCounter& counter_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_CALL_COUNTER_H_
