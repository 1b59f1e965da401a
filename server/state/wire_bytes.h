// Counts the bytes of the messages that carried tensors.

#ifndef SLUICE_SERVER_STATE_WIRE_BYTES_H_
#define SLUICE_SERVER_STATE_WIRE_BYTES_H_

#include <atomic>
#include <cstdint>

namespace sluice {

// Any thread may call any method; none takes a lock.
class WireBytes {
 public:
  void AddReceived(uint64_t bytes) { received_.fetch_add(bytes, std::memory_order_relaxed); }
  void AddSent(uint64_t bytes) { sent_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> sent_{0};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_WIRE_BYTES_H_
