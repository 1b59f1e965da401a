// Which tensor of a model uses which encoding, and where the model's vector is cut into chunks.
//
// A worker reads its flags --push-encoding and --pull-encoding into an EncodingChoice. PlanChunks()
// then cuts the vector once, when the layout is known. Everything here is a value or a pure
// function.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_PLAN_H_
#define SLUICE_COMMON_ENCODING_ENCODING_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/layout.h"

namespace sluice {

// The user's choice for one direction: pushes or pulls.
struct EncodingChoice {
  Encoding encoding;  // for all tensors without an override; with `candidates`, plain at first
  // With "auto": the encodings that the worker may choose for `encoding` while the job runs. The
  // first one is plain. Empty without "auto".
  std::vector<Encoding> candidates;
  // Overrides `encoding` for tensors whose name matches. `pattern` is a name, or the beginning of a
  // name followed by '*'. The first override that matches is used.
  struct Override {
    std::string pattern;
    Encoding encoding;
  };
  std::vector<Override> overrides;

  bool automatic() const { return !candidates.empty(); }
  bool plain() const;   // whether every tensor is always sent as it is
  bool sparse() const;  // whether some tensor uses, or may use, a sparse encoding
  // The first candidate that encodes matrices: low-rank. Null: none.
  const Encoding* matrix_candidate() const;
  // Whether some encoding has the option `momentum`. Then the workers apply the optimizer's
  // momentum to all parameters, and the server applies none.
  bool momentum() const;
};

// The largest number of candidates in addition to plain.
inline constexpr size_t kMostCandidates = 4;

// Reads ENCODING[,PATTERN=ENCODING…], for example "int8,fc.*=float16,conv1.weight=none". The first
// ENCODING may be "auto": the candidates are then plain, float32/nonzero/pdict and
// float32/nonzero/zstd:1. With "auto:ENCODING[,ENCODING…]" they are plain and the given ones.
// Returns BAD_ARGUMENT with a reason if the text is wrong.
absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text);

// Returns BAD_ARGUMENT if the choice names a transform that `transforms` does not have.
absl::Status CheckKnown(const EncodingChoice& choice, const TransformRegistry& transforms);

// Returns a text that ParseEncodingChoice() reads as the same choice.
std::string EncodingChoiceName(const EncodingChoice& choice);

// Elements [begin, end) of the vector or of a stripe, which are encoded together. A plain chunk has
// whole tensors, any number of them. An encoded chunk has one tensor or a part of one.
struct PlannedChunk {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t columns = 0;  // of the tensor, if it is a matrix and not in a stripe; otherwise 0
  const Encoding* encoding =
      nullptr;                 // points into the choice, which outlives the plan; null: plain
  bool awaits_choice = false;  // the encoding is one of the choice's candidates
  // In a stripe of gradients: the chunk is not sent. It is part of a chunk of PlanWhole().
  bool elsewhere = false;
};

// A tensor with fewer elements is sent plain, unless an override names it.
inline constexpr uint64_t kFewest = 1024;

// Cuts a vector, or a stripe of one (Layout::OfStripe()), into chunks and returns them in order.
// STATISTIC ranges are always plain, since the server needs their exact values. With momentum(),
// every other chunk has an encoding (float32 where it would be plain), because momentum is applied
// while encoding. A tensor has the same encoding in each stripe. The result depends only on the
// layout and the choice.
//
// With an encoding that has blocks, chunks begin at multiples of the block's size, except at the
// begin of a tensor. If the stripes' unit is such a multiple, each block has the same elements with
// any number of stripes, and so the same bits.
std::vector<PlannedChunk> PlanChunks(const Layout& layout, const EncodingChoice& choice);

// The chunks of a vector that is cut into several stripes which are encoded from the whole vector,
// and go to each server that holds elements of them: those of matrices that low-rank makes smaller.
std::vector<PlannedChunk> PlanWhole(const Layout& vector, const EncodingChoice& choice);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_PLAN_H_
