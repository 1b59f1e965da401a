// A vector on its way in: chunks are checked as they arrive and held until all of it is there.

#ifndef SLUICE_SERVER_STAGED_VECTOR_H_
#define SLUICE_SERVER_STAGED_VECTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/coverage.h"
#include "common/layout.h"

namespace sluice {

// Some of the vector's elements, as they came: `bytes` holds float32, little-endian, a whole number
// of them.
struct StagedChunk {
  uint64_t offset = 0;
  std::string bytes;

  // Valid as long as the chunk is neither moved nor changed.
  absl::Span<const float> elements() const;
};

// Externally synchronized. Never holds more bytes than the layout has.
class StagedVector {
 public:
  explicit StagedVector(std::shared_ptr<const Layout> layout);

  // Takes a chunk. BAD_CHUNK if it is outside the vector or overlaps; NOT_FINITE naming the first
  // element that is NaN or infinite. After an error the vector is of no more use.
  absl::Status Add(StagedChunk chunk);

  // OK once every element has arrived; else BAD_CHUNK.
  absl::Status CheckComplete() const { return coverage_.CheckComplete(); }

  uint64_t bytes() const { return coverage_.covered() * sizeof(float); }

  // What has arrived, in that order; none overlap.
  const std::vector<StagedChunk>& chunks() const { return chunks_; }

  // Writes the vector, which is complete, to `to`, which has the layout's size.
  void CopyTo(absl::Span<float> to) const;

  // The square root of the sum of the squares of the vector's PARAMETER elements.
  double ParameterNorm() const;

 private:
  std::shared_ptr<const Layout> layout_;
  Coverage coverage_;
  std::vector<StagedChunk> chunks_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STAGED_VECTOR_H_
