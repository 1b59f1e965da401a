// The bytes of arrays of numbers in files. They are little-endian, as the machine is
// (common/tensor/tensor_chunk.h), so they are copied as they are.

#ifndef SLUICE_COMMON_CHECKPOINT_NUMBER_BYTES_H_
#define SLUICE_COMMON_CHECKPOINT_NUMBER_BYTES_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// The bytes of these numbers, valid as long as they are.
template <typename AnyNumber>
absl::string_view NumberBytes(const std::vector<AnyNumber>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(AnyNumber)};
}

// Takes so many numbers from the front of `bytes`, which has them.
template <typename AnyNumber>
std::vector<AnyNumber> TakeNumbers(size_t count, absl::string_view* bytes) {
  std::vector<AnyNumber> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), bytes->data(), count * sizeof(AnyNumber));
  bytes->remove_prefix(count * sizeof(AnyNumber));
  return numbers;
}

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_NUMBER_BYTES_H_
