// A fixed run of floats that is not initialised: whoever makes it writes it first. It lies on the
// heap, or where other processes of the node can read it.

#ifndef SLUICE_SERVER_FLOAT_BUFFER_H_
#define SLUICE_SERVER_FLOAT_BUFFER_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "common/shared_memory.h"

namespace sluice {

// Owns its memory; moves, but does not copy.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size)
      : heap_(new float[size]), floats_(absl::MakeSpan(heap_.get(), size)) {}
  explicit FloatBuffer(std::shared_ptr<SharedMemory> memory)
      : memory_(std::move(memory)), floats_(memory_->floats()) {}

  size_t size() const { return floats_.size(); }
  absl::Span<float> span() { return floats_; }
  absl::Span<const float> span() const { return floats_; }

  // Null if it lies on the heap.
  SharedMemory* memory() const { return memory_.get(); }

 private:
  std::unique_ptr<float[]> heap_;
  std::shared_ptr<SharedMemory> memory_;
  absl::Span<float> floats_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_FLOAT_BUFFER_H_
