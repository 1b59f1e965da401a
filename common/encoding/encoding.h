// How floats are written on the wire: a short pipeline of three steps.
//
//   values ── transform ──▶ bytes ── byte layout ──▶ bytes ── compressor ──▶ payload
//
// The transform makes fewer bytes of the values, most by losing some of them; the byte layout puts
// bytes side by side that are alike; the compressor finds what repeats. README.md in this folder
// specifies the bytes.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_H_
#define SLUICE_COMMON_ENCODING_ENCODING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

inline constexpr uint32_t kMostRank = 64;

// The names of Sluice's own transforms, for error messages.
inline constexpr absl::string_view kBuiltinTransformNames =
    "float32, float16, bfloat16, int8, sign, top-k, random-k or low-rank";

struct Encoding {
  ValueTransform transform = ValueTransform::kFloat32;
  bool stochastic = false;  // kInt8: rounds up or down at random, right on average
  double share = 0.01;      // kTopK, kRandomK: of the values, those that are sent; in (0, 1]
  bool half = false;        // kTopK, kRandomK: values are sent as float16
  // Of these only a worker that pushes knows.
  bool momentum = false;  // kTopK, kSign: the worker has the optimizer's momentum; see velocity.h
  uint64_t warmup = 0;    // kTopK: the first steps, over which the share falls to what it says
  uint32_t rank = 4;      // kLowRank: columns of the narrow matrices; 1 to kMostRank
  std::string custom;     // kCustom: its name
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  int level = 1;  // kZstd: 1 (fastest) to 19

  // Whether what is decoded may differ from what was encoded. A user's own is held to be.
  bool lossy() const { return transform != ValueTransform::kFloat32; }
  // Whether values that are not sent decode as 0. Fit for changes, which add up, and not for
  // values, which replace others.
  bool sparse() const;
  // Whether it may be told to have momentum on the worker: it loses less of a training that way.
  bool takes_momentum() const;
  // Whether nothing is done: then the payload is the floats.
  bool plain() const;
};

bool operator==(const Encoding& a, const Encoding& b);

// Whether a transform may have this name: 1 to 64 lower-case letters, digits, '-' and '_',
// and not "auto", which flags use for something else.
bool IsTransformName(absl::string_view name);

// What a flag says: TRANSFORM[:OPTION…][/planes|/nonzero][/zstd[:LEVEL]|/pdict], where TRANSFORM is
// one of float32, float16, bfloat16, int8[:stochastic], sign[:momentum],
// top-k[:SHARE][:float16][:momentum][:warmup=STEPS], random-k[:SHARE][:float16], low-rank[:RANK],
// or the name of a user's own. "none" is float32. BAD_ARGUMENT names what is wrong.
absl::StatusOr<Encoding> ParseEncoding(absl::string_view text);

// What ParseEncoding() reads as the same encoding.
std::string EncodingName(const Encoding& encoding);

// The share that is sent of a gradient computed on `step`. While an encoding warms up it falls in
// four stages of equal length, each time by the same factor, from a quarter to encoding.share: to
// 0.001 by 0.25, 0.063, 0.016 and 0.004. A share of a quarter or more does not warm up.
double ShareAt(const Encoding& encoding, uint64_t step);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_H_
