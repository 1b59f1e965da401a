// The header of a safetensors file (github.com/huggingface/safetensors): 8 bytes with its length,
// little-endian, then JSON that names each tensor's type, shape and place in the data that follows
// to the end of the file. Reading one runs no code.

#ifndef SLUICE_COMMON_STORAGE_SAFETENSORS_H_
#define SLUICE_COMMON_STORAGE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Bytes [begin, end) of the data.
struct SafeTensor {
  std::string name;
  std::string dtype;  // "F32", "U8", …
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafeTensorsHeader {
  std::vector<SafeTensor> tensors;  // in order of their places
  std::map<std::string, std::string> metadata;
};

// The most that a header may be long; that of the format's own library.
inline constexpr uint64_t kMostSafeTensorsHeader = 100'000'000;
inline constexpr uint64_t kSafeTensorsPrefix = 8;

// The prefix and the JSON, padded so that the data begins at a multiple of 64 bytes. Names and
// metadata are UTF-8; the tensors' places follow each other from 0 on.
std::string EncodeSafeTensorsHeader(const SafeTensorsHeader& header);

// How long the JSON is, of the first 8 bytes. DATA_LOSS if it does not fit in a file of that size.
absl::StatusOr<uint64_t> DecodeSafeTensorsPrefix(absl::string_view prefix, uint64_t file_size);

// Of bytes that anyone may have made: DATA_LOSS says what is wrong with them. The tensors are
// those of the format, cover `data_size` bytes without gaps, and are as long as their shapes say.
absl::StatusOr<SafeTensorsHeader> DecodeSafeTensorsJson(absl::string_view json, uint64_t data_size);

}  // namespace sluice

#endif  // SLUICE_COMMON_STORAGE_SAFETENSORS_H_
