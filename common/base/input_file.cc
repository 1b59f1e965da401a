#include "common/base/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

absl::Status CannotRead(const std::string& path) {
  const absl::Status why = absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return errno == ENOTDIR ? absl::NotFoundError(why.message()) : why;
}

absl::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace

absl::Status CheckRegular(const std::string& path, const struct stat& facts) {
  if (S_ISREG(facts.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is ", KindOf(facts.st_mode), ", expected a regular file; name another"));
}

absl::StatusOr<InputFile> OpenInput(const std::string& path) {
  InputFile file;
  // A device may act when it is opened, so it is not.
  if (stat(path.c_str(), &file.facts) != 0) return CannotRead(path);
  absl::Status regular = CheckRegular(path, file.facts);
  if (!regular.ok()) return regular;
  // Another file may have got that name since.
  file.descriptor =
      FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.descriptor.ok() || fstat(file.descriptor.get(), &file.facts) != 0) {
    return CannotRead(path);
  }
  regular = CheckRegular(path, file.facts);
  if (!regular.ok()) return regular;
  return file;
}

absl::StatusOr<std::string> ReadInput(const InputFile& file, const std::string& path,
                                      uint64_t most) {
  constexpr uint64_t kPiece = 1 << 16;
  std::string bytes;
  for (size_t size = 0; size <= most;) {
    bytes.resize(std::min(size + kPiece, most + 1));
    const ssize_t more = pread(file.descriptor.get(), bytes.data() + size, bytes.size() - size,
                               static_cast<off_t>(size));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return CannotRead(path);
    size += static_cast<size_t>(more);
    if (more > 0) continue;
    bytes.resize(size);
    return bytes;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has more than ", most, " bytes, the most that it may; name another"));
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most) {
  const auto file = OpenInput(path);
  if (!file.ok()) return file.status();
  return ReadInput(*file, path, most);
}

}  // namespace sluice
