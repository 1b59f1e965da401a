// Opens the files that programs read. A file must be a regular file, or a symbolic link to one. A
// program could wait for ever for other files: perhaps nobody writes to a named pipe, and a device
// may have no end.

#ifndef SLUICE_COMMON_BASE_INPUT_FILE_H_
#define SLUICE_COMMON_BASE_INPUT_FILE_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

struct InputFile {
  FileDescriptor descriptor;
  struct stat facts = {};  // of the open file
};

// Returns OK if `facts` are those of a regular file. INVALID_ARGUMENT says what kind of file `path`
// is.
absl::Status CheckRegular(const std::string& path, const struct stat& facts);

// Opens a file for reading. It never waits for another process. INVALID_ARGUMENT if it is not a
// regular file. Other errors are those of stat(2) and open(2), for example NOT_FOUND. All name the
// path.
absl::StatusOr<InputFile> OpenInput(const std::string& path);

// Returns all bytes of a file. INVALID_ARGUMENT if it has more than `most` bytes. Other errors are
// those of read(2).
absl::StatusOr<std::string> ReadInput(const InputFile& file, const std::string& path,
                                      uint64_t most);

// Calls OpenInput() and ReadInput().
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_INPUT_FILE_H_
