// Finds bytes that changed on their way.

#ifndef SLUICE_COMMON_ENCODING_CHECKSUM_H_
#define SLUICE_COMMON_ENCODING_CHECKSUM_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// XXH3-64 with seed 0 (Collet, xxhash.com): a quarter of a pass over memory.
uint64_t Checksum(absl::string_view bytes);

// CORRUPT_CHUNK unless a chunk's payload has the checksum that its sender says.
absl::Status CompareChecksums(uint64_t offset, uint64_t found, uint64_t expected);

// Checksum() of bytes that lie in several places.
class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;

  void Add(absl::string_view bytes);
  uint64_t Get() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_CHECKSUM_H_
