// Common parts of top-k and random-k: both send a few of a chunk's values, as float32 or float16.

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

// Returns how many of `count` values are sent: that share of them, but at least one.
uint64_t KeptOf(size_t count, double share);

// Returns BAD_CHUNK if how.kept is not a possible number of values.
absl::Status CheckKept(const ChunkEncoding& how);

// Returns the bytes of one value that is sent.
size_t WidthOfKept(bool half);

// Encodes the values that are sent as float16 if `half`, otherwise as float32.
std::string EncodeKept(const std::vector<float>& values, bool half);
// Reverses EncodeKept(). Returns BAD_CHUNK if `bytes` is not as long as how.kept values are.
absl::StatusOr<std::vector<float>> DecodeKept(absl::string_view bytes, const ChunkEncoding& how);

// Returns BAD_CHUNK with the message "a sparse chunk" and `what`.
absl::Status BrokenSparseChunk(absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_KEPT_VALUES_H_
