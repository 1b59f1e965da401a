// Encoded values read in the plainest way: what common/encoding/FORMAT.md says, line by line, with
// no thought of speed. What Sluice's own decoder is compared with; it shares no code with it.

#ifndef SLUICE_TESTS_FUZZ_ORACLES_PLAIN_DECODER_H_
#define SLUICE_TESTS_FUZZ_ORACLES_PLAIN_DECODER_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// The values of a payload that is not compressed by zstd, with a count of 1 to 2^18; none if there
// is something in it that a decoder refuses.
absl::optional<std::vector<float>> DecodePlainly(const ChunkEncoding& how,
                                                 absl::string_view payload);

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_ORACLES_PLAIN_DECODER_H_
