// A vector that is arriving in chunks. Each chunk is checked when it arrives. Then it stays in the
// memory in which it was received, without a copy. Only a chunk that is small, or that was received
// in small pieces, is copied, because it may keep much more memory than its elements need. A vector
// may also have memory of its own: then each chunk is copied there.

#ifndef SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_
#define SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/coverage.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// Replaces the pieces by a copy of their elements, which nobody else writes.
void CopyPieces(TensorChunk& chunk);

// The floats of memory that may be null.
inline absl::Span<float> FloatsOf(const std::shared_ptr<FloatBuffer>& memory) {
  return memory == nullptr ? absl::Span<float>() : memory->span();
}

// What StageChunk() works with.
struct Staging {
  const TransformRegistry* transforms = nullptr;  // decodes; null: chunks are never encoded
  Parallel* parallel = nullptr;  // helps with a large chunk; null: the calling thread works alone
  // The memory of the whole vector, or empty. A chunk that begins after its end holds rows.
  absl::Span<float> memory = {};
};

// Stages one chunk. It calls reserve(chunk), decodes the chunk if it is encoded, copies its
// elements to the vector's memory, if there is any, checks that they are finite, and calls
// place(chunk) with the decoded chunk, or with the error. Returns the first error: that of
// `reserve`, of DecodeValues(), NOT_FINITE with the name(offset) of the first NaN or infinite
// element, or that of `place`. If `reserve` fails, `place` is not called. Between the two calls the
// function writes only the chunk's own range of the memory, so a caller with a lock holds it only
// inside `reserve` and `place`.
absl::Status StageChunk(TensorChunk chunk, absl::FunctionRef<std::string(uint64_t offset)> name,
                        const Staging& staging,
                        absl::FunctionRef<absl::Status(const TensorChunk&)> reserve,
                        absl::FunctionRef<absl::Status(absl::StatusOr<TensorChunk>)> place);

// Externally synchronized. After Seal() any number of threads may read it.
class StagedVector {
 public:
  // The most chunks of a vector with that layout. Each chunk takes up to 200 bytes in addition to
  // its elements. So a vector in that many chunks takes a fifth more memory than its elements, and
  // 50 kB.
  static uint64_t MostChunks(const Layout& layout);

  // `memory`, if any, has the size of the vector. Nobody else reads or writes it until the vector
  // is sealed and added to a sum, which may lie in it. Chunks of foreign memory stay where they
  // are.
  explicit StagedVector(std::shared_ptr<const Layout> layout,
                        std::shared_ptr<FloatBuffer> memory = nullptr);
  // Null if it has none.
  const std::shared_ptr<FloatBuffer>& memory() const { return memory_; }

  // Takes a chunk and holds its memory: StageChunk() with Reserve() and Place(). After an error the
  // vector must not be used any more.
  absl::Status Add(TensorChunk chunk, Parallel* parallel = nullptr,
                   const TransformRegistry* transforms = nullptr);

  // Marks the chunk's range as taken. BAD_CHUNK if it lies outside the vector, overlaps another
  // chunk, or is more than MostChunks() allows.
  absl::Status Reserve(const TensorChunk& chunk);
  // Holds a chunk that was reserved and checked.
  void Place(TensorChunk chunk);

  // OK if every element was reserved, else BAD_CHUNK.
  absl::Status CheckComplete() const { return coverage_.CheckComplete(); }

  // Ends the arrival. Call it before the elements are read.
  void Seal();

  // No element's magnitude is larger. That holds also for foreign memory, whose owner may write it
  // after the check: ForEachPiece() then gives 0 in place of what breaks the bound.
  float largest() const { return largest_; }
  // Whether a part of it lies in memory that another process may write. It may then read otherwise
  // each time.
  bool foreign() const { return foreign_; }

  uint64_t bytes() const { return coverage_.covered() * sizeof(float); }

  // Calls piece(offset, floats) for all elements of [begin, end) that have arrived, in the order of
  // their offsets. The floats are valid until it returns.
  void ForEachPiece(uint64_t begin, uint64_t end,
                    absl::FunctionRef<void(uint64_t offset, FloatPiece floats)> piece) const;

  // Asks for the memory of those elements, at most 1 KiB of each piece: the processor goes on by
  // itself.
  void Prefetch(uint64_t begin, uint64_t end) const;

  // Copies elements [begin, begin + to.size()) to `to`, which may be their part of memory(). All of
  // them have arrived.
  void CopyTo(uint64_t begin, absl::Span<float> to) const;

  // The square root of the sum of the squares of the vector's PARAMETER elements.
  double ParameterNorm() const;

 private:
  struct Placed {
    uint64_t offset = 0;
    FloatPiece floats;

    uint64_t end() const { return offset + floats.size(); }
  };

  // As ForEachPiece(), but foreign memory is passed as it is.
  template <typename Piece>
  void ForEachPlaced(uint64_t begin, uint64_t end, const Piece& piece) const;

  std::shared_ptr<const Layout> layout_;
  std::shared_ptr<FloatBuffer> memory_;
  Coverage coverage_;
  uint64_t chunks_ = 0;
  std::vector<Placed> pieces_;  // disjoint; after Seal() in the order of offsets
  std::vector<std::shared_ptr<const void>> owners_;
  float largest_ = 0;
  bool foreign_ = false;
  bool sealed_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STAGED_VECTOR_H_
