// A fixed run of floats that is not initialised: whoever makes it writes it first.

#ifndef SLUICE_SERVER_FLOAT_BUFFER_H_
#define SLUICE_SERVER_FLOAT_BUFFER_H_

#include <cstddef>
#include <memory>

#include "absl/types/span.h"

namespace sluice {

// Owns its memory; moves, but does not copy.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size) : data_(new float[size]), size_(size) {}

  size_t size() const { return size_; }
  absl::Span<float> span() { return absl::MakeSpan(data_.get(), size_); }
  absl::Span<const float> span() const { return absl::MakeConstSpan(data_.get(), size_); }

 private:
  std::unique_ptr<float[]> data_;
  size_t size_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_FLOAT_BUFFER_H_
