// A file of events that several processes of one node write together.
//
// It holds a JSON array, whole after every append: whoever appends takes the closing bracket away
// and puts it back, under a lock on the file.

#ifndef SLUICE_COMMON_TRACE_TRACE_FILE_H_
#define SLUICE_COMMON_TRACE_TRACE_FILE_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// What becomes of a file that is there already.
enum class Existing { kEmptied, kContinued };

// Externally synchronized.
class TraceFile {
 public:
  // INVALID_ARGUMENT, with the path and the reason, if it cannot be written.
  static absl::StatusOr<TraceFile> Open(const std::string& path, Existing existing);

  // Appends events, which are JSON objects parted by ",\n": all of them, or, after an error, none.
  absl::Status Append(absl::string_view events);

 private:
  TraceFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Error(absl::string_view what) const;
  absl::optional<off_t> EndOfEvents() const;
  bool Write(absl::string_view bytes);

  std::string path_;
  FileDescriptor file_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TRACE_TRACE_FILE_H_
