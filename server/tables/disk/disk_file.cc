#include "server/tables/disk/disk_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

absl::Status CannotUse(const std::string& directory, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("--table-dir: cannot make a file in ", directory, ": ", why,
                   "; name a folder on a local disk that this user may write to"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskFile>> DiskFile::Create(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return CannotUse(directory, error.message());
  std::string path = directory + "/rows-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return CannotUse(directory, std::strerror(errno));
  unlink(path.c_str());
  return std::unique_ptr<DiskFile>(new DiskFile(file, directory));
}

DiskFile::~DiskFile() { close(file_); }

absl::Status DiskFile::Write(uint64_t offset, absl::Span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot write rows of tables to --table-dir=", directory_, ": ",
                       std::strerror(written < 0 ? errno : ENOSPC)));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

absl::Status DiskFile::Read(uint64_t offset, absl::Span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t read = pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) {
      return absl::DataLossError(
          absl::StrCat("cannot read rows of tables from --table-dir=", directory_, ": ",
                       read < 0 ? std::strerror(errno) : "the file is shorter than it was"));
    }
    bytes.remove_prefix(static_cast<size_t>(read));
    offset += static_cast<uint64_t>(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RowDisk>> RowDisk::Open(const std::string& directory) {
  const auto file = DiskFile::Create(directory);
  if (!file.ok()) return file.status();
  return std::shared_ptr<RowDisk>(new RowDisk(directory));
}

}  // namespace sluice
