// Counts the bytes of the messages that carried tensors.

#ifndef SLUICE_SERVER_STATE_WIRE_BYTES_H_
#define SLUICE_SERVER_STATE_WIRE_BYTES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/tensor/chunk_encoding.h"

namespace sluice {

// The bytes that were moved in one encoding.
struct ChunkBytes {
  uint64_t tensor = 0;  // of the elements as float32
  uint64_t wire = 0;    // of the messages
};

inline constexpr size_t kValueTransforms = static_cast<size_t>(ValueTransform::kCustom) + 1;
// For people; the place of a ValueTransform is its number.
inline constexpr std::array<const char*, kValueTransforms> kTransformNames = {
    "float32", "float16", "bfloat16", "int8", "sign", "top-k", "random-k", "low-rank", "custom"};
static_assert(kTransformNames.back() != nullptr, "each transform has a name here");
// The place of a ValueTransform is its number. A user's transforms share the last one.
using BytesByTransform = std::array<ChunkBytes, kValueTransforms>;

// Any thread may call any method; none takes a lock.
class WireBytes {
 public:
  // All messages.
  void AddReceived(uint64_t bytes) { Add(received_, bytes); }
  void AddSent(uint64_t bytes) { Add(sent_, bytes); }
  uint64_t received() const { return Get(received_); }
  uint64_t sent() const { return Get(sent_); }

  // Of these, the messages with a part of a vector each.
  void AddChunkReceived(ValueTransform transform, const ChunkBytes& bytes) {
    received_by_.Add(static_cast<size_t>(transform), bytes);
  }
  void AddChunkSent(ValueTransform transform, const ChunkBytes& bytes) {
    sent_by_.Add(static_cast<size_t>(transform), bytes);
  }
  void AddChunksSent(const BytesByTransform& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i].wire > 0) sent_by_.Add(i, bytes[i]);
    }
  }
  BytesByTransform received_by_transform() const { return received_by_.Get(); }
  BytesByTransform sent_by_transform() const { return sent_by_.Get(); }

 private:
  using Count = std::atomic<uint64_t>;

  static void Add(Count& count, uint64_t bytes) {
    count.fetch_add(bytes, std::memory_order_relaxed);
  }
  static uint64_t Get(const Count& count) { return count.load(std::memory_order_relaxed); }

  class ByTransform {
   public:
    void Add(size_t transform, const ChunkBytes& bytes) {
      WireBytes::Add(tensor_[transform], bytes.tensor);
      WireBytes::Add(wire_[transform], bytes.wire);
    }
    BytesByTransform Get() const {
      BytesByTransform bytes;
      for (size_t i = 0; i < kValueTransforms; ++i) {
        bytes[i] = {WireBytes::Get(tensor_[i]), WireBytes::Get(wire_[i])};
      }
      return bytes;
    }

   private:
    std::array<Count, kValueTransforms> tensor_{};
    std::array<Count, kValueTransforms> wire_{};
  };

  Count received_{0};
  Count sent_{0};
  ByTransform received_by_;
  ByTransform sent_by_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_WIRE_BYTES_H_
