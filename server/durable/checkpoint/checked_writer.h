// Writes files of tensors whose last 8 bytes are the XXH3-64 of all bytes before them,
// little-endian. CheckedReader reads them.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKED_WRITER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKED_WRITER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/encoding/checksum.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"

namespace sluice {

// For one thread. The file outlives it. Errors are FileSystem's.
class CheckedWriter {
 public:
  explicit CheckedWriter(WritableFile& file) : file_(file) {}

  // RESOURCE_EXHAUSTED if the JSON would be longer than `most` bytes.
  absl::Status WriteHeader(const SafeTensorsHeader& header, uint64_t most);
  absl::Status Write(absl::string_view bytes);
  absl::Status WriteChecksum();

  // The XXH3-64 of all bytes that were written; after WriteChecksum(), of the whole file.
  uint64_t sum() const { return sum_.Get(); }

 private:
  WritableFile& file_;
  Checksummer sum_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKED_WRITER_H_
