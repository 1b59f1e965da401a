// A fuzzer's bytes, taken apart from the front: numbers that steer a target, then what it is about.

#ifndef SLUICE_TESTS_FUZZ_INPUT_H_
#define SLUICE_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/little_endian.h"

namespace sluice {

// Refers to the bytes. Beyond their end all are 0.
class Input {
 public:
  explicit Input(absl::string_view bytes) : rest_(bytes) {}

  uint8_t Byte() {
    const absl::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }

  // Of 8 bytes, little-endian.
  uint64_t Number() {
    std::string bytes(Take(sizeof(uint64_t)));
    bytes.resize(sizeof(uint64_t));
    return FromLittleEndian64(bytes);
  }

  // As many bytes, or fewer if there are no more.
  absl::string_view Take(size_t count) {
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // A length of one byte, then as many.
  absl::string_view Word() {
    const size_t count = Byte();
    return Take(count);
  }

  absl::string_view Rest() { return Take(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  absl::string_view rest_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_INPUT_H_
