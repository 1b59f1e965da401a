#include "server/events/record_file.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/base/input_file.h"

namespace sluice {
namespace {

// The error of errno.
absl::Status WriteError() { return absl::UnavailableError(strerror(errno)); }

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Half a record would spoil the next one, so it is cut off.
absl::Status AppendWhole(int file, absl::string_view bytes) {
  const off_t end = lseek(file, 0, SEEK_END);
  if (end < 0) return WriteError();
  if (WriteAll(file, bytes)) return absl::OkStatus();
  const absl::Status error = WriteError();
  if (ftruncate(file, end) != 0) return WriteError();
  return error;
}

}  // namespace

absl::StatusOr<AppendBytes> OpenToAppend(const std::string& path) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  const auto file = std::make_shared<const FileDescriptor>(open(path.c_str(), flags, 0644));
  struct stat info = {};
  if (!file->ok() || fstat(file->get(), &info) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", strerror(errno)));
  }
  const absl::Status regular = CheckRegular(path, info);
  if (!regular.ok()) return regular;
  return AppendBytes([file](absl::string_view bytes) { return AppendWhole(file->get(), bytes); });
}

void RecordFile::Add(std::string record, uint64_t weight) {
  bool fits = false;
  {
    const absl::MutexLock lock(&mu_);
    fits = queued_ + record.size() <= kMostQueued;
    if (fits) queued_ += record.size();
  }
  if (!fits) return Lose(weight, "the disk is too slow");
  thread_->Run([this, record = std::move(record), weight] { Write(record, weight); });
}

void RecordFile::Write(const std::string& record, uint64_t weight) {
  const absl::Status written = append_(record);
  if (!written.ok()) Lose(weight, written.message());
  const absl::MutexLock lock(&mu_);
  queued_ -= record.size();
  if (written.ok()) loses_ = false;
}

void RecordFile::Lose(uint64_t weight, absl::string_view why) {
  const absl::MutexLock lock(&mu_);
  lost_ += weight;
  if (std::exchange(loses_, true)) return;
  LOG(WARNING) << name_ << " loses records, because they cannot be written: " << why
               << "; training continues";
}

uint64_t RecordFile::TakeLost() {
  const absl::MutexLock lock(&mu_);
  return std::exchange(lost_, 0);
}

}  // namespace sluice
