#include "common/trace/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/input_file.h"

namespace sluice {
namespace {

constexpr absl::string_view kBegin = "[\n";
constexpr absl::string_view kNext = ",\n";
constexpr absl::string_view kEnd = "\n]\n";

// Holds the file's lock while it exists.
class Lock {
 public:
  explicit Lock(int file) : file_(file), held_(flock(file, LOCK_EX) == 0) {}
  ~Lock() {
    if (held_) flock(file_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool held() const { return held_; }

 private:
  const int file_;
  const bool held_;
};

// Marks the file as written by this process, as long as it is open: F_RDLCK, or F_WRLCK if nobody
// else has marked it. It has nothing to do with the lock of an append.
bool Mark(int file, short type) {
  struct flock mark = {};
  mark.l_type = type;
  mark.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_SETLK, &mark) == 0;
}

}  // namespace

absl::StatusOr<TraceFile> TraceFile::Open(const std::string& path, Existing existing) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
  TraceFile file(path, FileDescriptor(open(path.c_str(), flags, 0644)));
  struct stat info = {};
  if (!file.file_.ok() || fstat(file.file_.get(), &info) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write the trace ", path, ": ", strerror(errno)));
  }
  const absl::Status regular = CheckRegular(path, info);
  if (!regular.ok()) return regular;
  const bool alone = existing == Existing::kEmptied && Mark(file.file_.get(), F_WRLCK);
  if (alone && ftruncate(file.file_.get(), 0) != 0) return file.Error("empty");
  Mark(file.file_.get(), F_RDLCK);
  return file;
}

absl::Status TraceFile::Append(absl::string_view events) {
  const Lock lock(file_.get());
  if (!lock.held()) return Error("lock");
  const absl::optional<off_t> end = EndOfEvents();
  if (!end.has_value()) return Error("read");
  const absl::string_view before = *end == 0 ? kBegin : kNext;
  // O_APPEND writes at the end, even if another process has moved it.
  if (ftruncate(file_.get(), *end) == 0 && Write(absl::StrCat(before, events, kEnd))) {
    return absl::OkStatus();
  }
  const absl::Status error = Error("write");
  // Half an event would make the file unreadable.
  if (ftruncate(file_.get(), *end) == 0 && *end > 0) Write(kEnd);
  return error;
}

// The offset of the closing bracket; the file's end if there is none, 0 if there are no events yet.
absl::optional<off_t> TraceFile::EndOfEvents() const {
  const off_t size = lseek(file_.get(), 0, SEEK_END);
  if (size < 0) return absl::nullopt;
  const auto closing = static_cast<off_t>(kEnd.size());
  if (size < closing) return 0;
  char last[kEnd.size()];
  if (pread(file_.get(), last, kEnd.size(), size - closing) != closing) return absl::nullopt;
  return absl::string_view(last, kEnd.size()) == kEnd ? size - closing : size;
}

bool TraceFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status TraceFile::Error(absl::string_view what) const {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " the trace ", path_, ": ", strerror(errno)));
}

}  // namespace sluice
