#ifndef SLUICE_WORKER_DATA_IDX_READER_H_
#define SLUICE_WORKER_DATA_IDX_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// Reads IDX files, the format of MNIST and its kin: an array of unsigned bytes behind a header.
//
//   byte 0, 1   0x00 0x00
//   byte 2      0x08, the element type: unsigned bytes (the only one read here)
//   byte 3      rank
//   byte 4...   rank dimensions, each 32 bits, big-endian
//   then        the elements, the last dimension varying fastest, and nothing after them
//
// Any thread may call these functions.
//
// An error begins with the file's name, and says at which byte what was expected and what was
// found. Offsets count inflated bytes, except where the message says "compressed byte".
//   NOT_FOUND         there is no such file
//   DATA_LOSS         the file is truncated, or its gzip stream is corrupt
//   INVALID_ARGUMENT  the magic or a dimension is wrong, or bytes follow the elements
//   others            the error of open(2) or read(2)

// A larger array is refused before memory is allocated for it. (MNIST needs 45 MiB.)
inline constexpr uint64_t kMaxIdxBytes = uint64_t{1} << 30;

struct IdxArray {
  std::vector<uint32_t> dims;  // `rank` of them, each at least 1
  std::vector<uint8_t> data;   // their product, row-major
};

// Reads the file at `path`. `expected_rank` lies in [1, 255]. It may be compressed by gzip, which
// its content shows, not its name. Inflates at most one byte more than its header declares.
absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int expected_rank);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_IDX_READER_H_
