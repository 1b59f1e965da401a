// A buffer of floats with a fixed size. It is not initialised unless Zeroed() made it. It lies on
// the heap, or in memory that other processes of the node can read.

#ifndef SLUICE_COMMON_TENSOR_FLOAT_BUFFER_H_
#define SLUICE_COMMON_TENSOR_FLOAT_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "absl/types/span.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

// Owns its memory. Can be moved, but not copied.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size) : FloatBuffer(std::malloc(HeapBytes(size)), size) {}
  explicit FloatBuffer(std::shared_ptr<SharedMemory> memory)
      : memory_(std::move(memory)), floats_(memory_->floats()) {}

  // A buffer of zeros. A large one takes no memory until it is written.
  static FloatBuffer Zeroed(size_t size) { return {std::calloc(HeapBytes(size), 1), size}; }

  size_t size() const { return floats_.size(); }
  absl::Span<float> span() { return floats_; }
  absl::Span<const float> span() const { return floats_; }

  // A pointer to the element at `index`; null if the buffer is empty.
  float* from(size_t index) { return floats_.empty() ? nullptr : floats_.data() + index; }

  // The shared memory; null if the buffer lies on the heap.
  SharedMemory* memory() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* heap) const { std::free(heap); }
  };

  // A cache line. The widest vector registers are as long, and are slow across two lines.
  static constexpr size_t kAlignment = 64;

  FloatBuffer(void* heap, size_t size) : heap_(heap) {
    if (heap == nullptr) throw std::bad_alloc();
    size_t space = HeapBytes(size);
    void* const aligned = std::align(kAlignment, size * sizeof(float), heap, space);
    floats_ = absl::MakeSpan(static_cast<float*>(aligned), size);
  }

  static size_t HeapBytes(size_t size) { return size * sizeof(float) + kAlignment; }

  std::unique_ptr<void, Free> heap_;
  std::shared_ptr<SharedMemory> memory_;
  absl::Span<float> floats_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_FLOAT_BUFFER_H_
