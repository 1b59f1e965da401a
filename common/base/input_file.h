// Opens the files that programs read. No file can stop a program: it must be a regular one, since
// nobody may ever write to a named pipe, and a device may have no end. A symbolic link to a regular
// file is one, too.

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
  struct stat facts = {};
};

// OK if these are the facts of a regular file. INVALID_ARGUMENT says what `path` is instead.
absl::Status CheckRegular(const std::string& path, const struct stat& facts);

// Opens a file to read, without waiting for another process. INVALID_ARGUMENT if it is not a
// regular one; other errors are those of open(2), for example NOT_FOUND. All name the path.
absl::StatusOr<InputFile> OpenInput(const std::string& path);

// Returns all bytes of a file. INVALID_ARGUMENT if there are more than `most`.
absl::StatusOr<std::string> ReadInput(const InputFile& file, const std::string& path,
                                      uint64_t most);

// OpenInput() and ReadInput().
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_INPUT_FILE_H_
