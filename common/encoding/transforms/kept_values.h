// What top-k and random-k have in common: few of a chunk's values, sent as float32 or float16.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_KEPT_VALUES_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_KEPT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/encoding/transform.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// How many of `count` values are kept: that share of them, but at least one.
uint64_t KeptOf(size_t count, double share);

// BAD_CHUNK unless as many values can be kept as `how` says.
absl::Status CheckKept(const ChunkEncoding& how);

// Of one kept value, in bytes.
size_t WidthOfKept(bool half);

std::string EncodeKept(const std::vector<float>& values, bool half);
// BAD_CHUNK if these are not the bytes of how.kept values.
absl::StatusOr<std::vector<float>> DecodeKept(absl::string_view bytes, const ChunkEncoding& how);

// BAD_CHUNK: a chunk of this kind is not what it should be.
absl::Status BrokenSparseChunk(absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_KEPT_VALUES_H_
