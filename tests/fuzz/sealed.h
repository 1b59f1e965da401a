// Files whose last 8 bytes are the checksum of those before them.

#ifndef SLUICE_TESTS_FUZZ_SEALED_H_
#define SLUICE_TESTS_FUZZ_SEALED_H_

#include <cstddef>
#include <string>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"

namespace sluice {

// The file with a checksum that fits. Checksums keep what is changed at random out.
inline std::string Sealed(std::string file) {
  constexpr size_t kBytes = 8;
  if (file.size() < kBytes) return file;
  file.resize(file.size() - kBytes);
  return file + LittleEndian64(Checksum(file));
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_SEALED_H_
