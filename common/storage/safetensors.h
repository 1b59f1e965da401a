// The header of a safetensors file (github.com/huggingface/safetensors): 8 bytes with its length,
// little-endian, then JSON with each tensor's type, shape and byte range in the data, which follows
// to the end of the file. Reading such a file runs no code.

#ifndef SLUICE_COMMON_STORAGE_SAFETENSORS_H_
#define SLUICE_COMMON_STORAGE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// A tensor whose elements are bytes [begin, end) of the data.
struct SafeTensor {
  std::string name;
  std::string dtype;  // "F32", "U8", …
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafeTensorsHeader {
  std::vector<SafeTensor> tensors;  // in order of their byte ranges
  std::map<std::string, std::string> metadata;
};

// The longest header in bytes. The format's own library reads no more than 100,000,000: about
// 150,000 tensors whose names have 80 bytes, with Adam's two slots.
inline constexpr uint64_t kMostSafeTensorsHeader = 500'000'000;
inline constexpr uint64_t kSafeTensorsPrefix = 8;

// Returns the prefix and the JSON, padded so that the data begins at a multiple of 64 bytes. Names
// and metadata must be UTF-8, and the byte ranges must follow each other from 0 on.
std::string EncodeSafeTensorsHeader(const SafeTensorsHeader& header);

// The length of the JSON, from the file's first 8 bytes. DATA_LOSS if it is longer than the file.
absl::StatusOr<uint64_t> DecodeSafeTensorsPrefix(absl::string_view prefix, uint64_t file_size);

// Reads the JSON, which may come from anywhere. DATA_LOSS says what is wrong with it. The returned
// tensors have types of the format, cover `data_size` bytes without gaps, and have the lengths that
// their shapes require.
absl::StatusOr<SafeTensorsHeader> DecodeSafeTensorsJson(absl::string_view json, uint64_t data_size);

}  // namespace sluice

#endif  // SLUICE_COMMON_STORAGE_SAFETENSORS_H_
