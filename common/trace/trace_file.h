// A trace file that several processes of one node write.
//
// It holds a JSON array, which is complete after every append: a process removes the closing
// bracket and writes it again, while it holds a lock on the file.

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

// The treatment of a file that already exists. One that another process writes is not emptied.
enum class Existing { kEmptied, kContinued };

// Externally synchronized.
class TraceFile {
 public:
  // INVALID_ARGUMENT, with the path and the reason, if the file cannot be written.
  static absl::StatusOr<TraceFile> Open(const std::string& path, Existing existing);

  // Appends events: JSON objects, separated by ",\n". After an error none of them is in the file.
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
