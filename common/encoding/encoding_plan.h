// Which range of a model is written how, and where it is cut into chunks.

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

// What a job's user says of one direction.
struct EncodingChoice {
  Encoding encoding;  // of all that nothing else is said of; plain until one of these is chosen:
  // What may be chosen for that while the job runs, the first being plain. Empty: nothing.
  std::vector<Encoding> candidates;
  // For tensors whose name matches, the first that does: `pattern` is a name, or the beginning of
  // one and '*'.
  struct Override {
    std::string pattern;
    Encoding encoding;
  };
  std::vector<Override> overrides;

  bool automatic() const { return !candidates.empty(); }
  bool plain() const;   // all of it, for good
  bool sparse() const;  // any of it, perhaps
  // Whether any of it corrects momentum: then workers have the optimizer's momentum for all
  // parameters, and the server has none.
  bool momentum() const;
};

// Encodings that a choice may be made of, beside plain.
inline constexpr size_t kMostCandidates = 4;

// Reads ENCODING[,PATTERN=ENCODING…], for example "int8,fc.*=float16,conv1.weight=none". In place
// of the first, "auto" stands for what is best of plain, float32/nonzero/pdict and
// float32/nonzero/zstd:1, and "auto:ENCODING[,ENCODING…]" for the best of plain and those.
// BAD_ARGUMENT names what is wrong.
absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text);

// Returns BAD_ARGUMENT if the choice names a transform that `transforms` does not have.
absl::Status CheckKnown(const EncodingChoice& choice, const TransformRegistry& transforms);

// What ParseEncodingChoice() reads as the same.
std::string EncodingChoiceName(const EncodingChoice& choice);

// Elements [begin, end) that are encoded together: whole tensors if they are plain, a part of one
// or all of one if they are not.
struct PlannedChunk {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t columns = 0;                // of the matrix that its tensor is: 0 if it is none
  const Encoding* encoding = nullptr;  // null: plain. The choice's own, which outlives it
  bool awaits_choice = false;          // `encoding` may change
};

// The vector's chunks, in order. STATISTIC ranges are plain, since what replaces a value must be
// one, and so are tensors of fewer elements than kFewest unless an override names them: they are
// not worth a chunk's fields. With momentum() only STATISTIC ranges have no encoding; others are
// then encoded as float32 in place of plain. How it is cut depends on nothing but layout and
// choice.
inline constexpr uint64_t kFewest = 1024;
std::vector<PlannedChunk> PlanChunks(const Layout& layout, const EncodingChoice& choice);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_PLAN_H_
