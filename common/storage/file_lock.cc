#include "common/storage/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/input_file.h"

namespace sluice {
namespace {

constexpr mode_t kLockMode = 0600;

absl::Status CannotLock(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(
      "cannot lock ", path, ": ", std::error_code(errno, std::generic_category()).message()));
}

// A lock of the whole file.
struct flock LockOf(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string Contents(const FileDescriptor& file) {
  char text[512];
  const ssize_t size = pread(file.get(), text, sizeof(text), 0);
  return std::string(absl::StripAsciiWhitespace({text, size < 0 ? size_t{0} : size_t(size)}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Take(const std::string& path,
                                                         const std::string& owner) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, kLockMode));
  if (!file.ok()) return CannotLock(path);
  struct flock lock = LockOf(F_WRLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return CannotLock(path);
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is held by ", Contents(file), "; stop it, or use another directory"));
  }
  std::unique_ptr<FileLock> taken(new FileLock(path, std::move(file)));
  const absl::Status named = taken->NameOwner(owner);
  if (!named.ok()) return named;
  return taken;
}

absl::Status FileLock::NameOwner(const std::string& owner) const {
  const std::string line = owner + "\n";
  const bool wrote =
      ftruncate(file_.get(), 0) == 0 &&
      pwrite(file_.get(), line.data(), line.size(), 0) == static_cast<ssize_t>(line.size());
  return wrote ? absl::OkStatus() : CannotLock(path_);
}

absl::StatusOr<bool> FileLock::IsHeld(const std::string& path) {
  const auto file = OpenInput(path);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  struct flock lock = LockOf(F_RDLCK);
  if (fcntl(file->descriptor.get(), F_OFD_GETLK, &lock) != 0) return CannotLock(path);
  return lock.l_type != F_UNLCK;
}

}  // namespace sluice
