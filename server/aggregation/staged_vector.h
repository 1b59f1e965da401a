// A vector on its way in: chunks are checked as they arrive and held, where they were received,
// until all of it is there.

#ifndef SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_
#define SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// Decodes `chunk`, a part of a vector with that layout, if it is encoded. Returns the errors of
// DecodeValues(), or NOT_FINITE, which names the first element that is NaN or infinite. `parallel`
// helps with a large chunk; if it is null, the calling thread does everything.
absl::StatusOr<TensorChunk> PrepareChunk(TensorChunk chunk, const Layout& layout,
                                         const TransformRegistry& transforms, Parallel* parallel);

// Externally synchronized; once sealed, any number of threads may read it.
class StagedVector {
 public:
  explicit StagedVector(std::shared_ptr<const Layout> layout);

  // Takes a chunk that is not encoded, and holds its memory: checks it, Reserve(), Place(). After
  // an error the vector is of no more use.
  absl::Status Add(TensorChunk chunk, Parallel* parallel = nullptr);

  // BAD_CHUNK if the chunk is outside the vector or overlaps.
  absl::Status Reserve(const TensorChunk& chunk);
  // It was reserved and prepared.
  void Place(TensorChunk chunk);

  // OK once every element was reserved; else BAD_CHUNK.
  absl::Status CheckComplete() const { return coverage_.CheckComplete(); }

  // Nothing more comes. To be called before what has arrived is read.
  void Seal();

  uint64_t bytes() const { return coverage_.covered() * sizeof(float); }

  // Calls piece(offset, floats) for all that has arrived of [begin, end), in the order of offsets.
  void ForEachPiece(uint64_t begin, uint64_t end,
                    absl::FunctionRef<void(uint64_t offset, FloatPiece floats)> piece) const;

  // Writes the vector, which is complete, to `to`, which has the layout's size.
  void CopyTo(absl::Span<float> to) const;

  // The square root of the sum of the squares of the vector's PARAMETER elements.
  double ParameterNorm() const;

 private:
  struct Placed {
    uint64_t offset = 0;
    FloatPiece floats;

    uint64_t end() const { return offset + floats.size(); }
  };

  std::shared_ptr<const Layout> layout_;
  Coverage coverage_;
  std::vector<Placed> pieces_;  // none overlap; once sealed, in the order of offsets
  std::vector<std::shared_ptr<const void>> owners_;
  bool sealed_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_
