// An encoding: how the values of a chunk become the bytes that are sent. It has three steps.
//
//   values ── transform ──▶ bytes ── byte layout ──▶ bytes ── compressor ──▶ payload
//
// The transform makes fewer bytes, and most transforms lose some precision. The byte layout puts
// similar bytes next to each other. The compressor removes repetition without loss. This header is
// about the names and the options of encodings; codec.h applies them. FORMAT.md specifies the
// bytes.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_H_
#define SLUICE_COMMON_ENCODING_ENCODING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

inline constexpr uint32_t kMostRank = 64;  // of low-rank

// Values with one scale. The first block of a chunk begins with the chunk.
inline constexpr uint64_t kInt8Block = 256;
inline constexpr uint64_t kSignBlock = 1024;

// The names of Sluice's own transforms, for error messages: "float32, float16, … or low-rank".
std::string BuiltinTransformNames();

struct Encoding {
  ValueTransform transform = ValueTransform::kFloat32;
  bool stochastic = false;  // kInt8: round up or down at random, so that the mean stays right
  double share = 0.01;      // kTopK, kRandomK: the share of the values that is sent, in (0, 1]
  bool half = false;        // kTopK, kRandomK: the values that are sent are float16
  // The worker applies the next two itself. They are not sent to the server.
  bool momentum = false;  // kTopK, kSign: momentum runs on the worker; see momentum_correction.h
  uint64_t warmup = 0;    // kTopK: during these first steps the share falls to `share`
  uint32_t rank = 4;      // kLowRank: columns of the narrow matrices, 1 to kMostRank
  std::string custom;     // kCustom: the name of a user's own transform
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  int level = 1;  // kZstd: 1 (fastest) to 19

  // Whether decoded values may differ from the original ones. A user's own transform counts as
  // lossy.
  bool lossy() const { return transform != ValueTransform::kFloat32; }
  // Whether values that are not sent decode as 0. Gradients can be sent this way, since they are
  // added up. Parameters cannot, since the zeros would replace them.
  bool sparse() const;
  // How many values are encoded together: those of a block. 1 if the transform has no blocks.
  uint64_t block() const;
  // Whether the option `momentum` exists for this transform.
  bool takes_momentum() const;
  // Whether all three steps do nothing: the payload is then the float32 values.
  bool plain() const;
};

bool operator==(const Encoding& a, const Encoding& b);

// Whether a transform may have this name: 1 to 64 lower-case letters, digits, '-' and '_',
// and not "auto", which flags use for something else.
bool IsTransformName(absl::string_view name);

// Reads the text of a flag: TRANSFORM[:OPTION…][/planes|/nonzero][/zstd[:LEVEL]|/pdict]. TRANSFORM
// is one of float32, float16, bfloat16, int8[:stochastic], sign[:momentum],
// top-k[:SHARE][:float16][:momentum][:warmup=STEPS], random-k[:SHARE][:float16] and
// low-rank[:RANK], or the name of a user's own transform. "none" means float32. Returns
// BAD_ARGUMENT with a reason if the text is wrong. Every other name that IsTransformName() allows
// is accepted: TransformRegistry::Find() tells whether the transform exists.
absl::StatusOr<Encoding> ParseEncoding(absl::string_view text);

// Returns a text that ParseEncoding() reads as the same encoding.
std::string EncodingName(const Encoding& encoding);

// Returns the share of values that is sent of a gradient computed on `step`. During the first
// encoding.warmup steps the share falls from 0.25 to encoding.share in four stages of equal length,
// by the same factor each time. Example for 0.001: the stages use 0.25, 0.063, 0.016 and 0.004. An
// encoding.share of 0.25 or more is used from the first step.
double ShareAt(const Encoding& encoding, uint64_t step);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_H_
