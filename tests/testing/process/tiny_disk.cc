#include "tests/testing/process/tiny_disk.h"

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/storage/file_system.h"

namespace sluice {
namespace {

absl::Status MountAt(const std::string& path, uint64_t bytes, unsigned long flags) {
  const std::string size = absl::StrCat("size=", bytes);
  if (mount("tmpfs", path.c_str(), "tmpfs", flags, size.c_str()) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot mount a tmpfs at ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TinyDisk>> TinyDisk::Mount(const std::string& path, uint64_t bytes) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  const absl::Status mounted = MountAt(path, bytes, 0);
  if (!mounted.ok()) return mounted;
  return absl::WrapUnique(new TinyDisk(path));
}

TinyDisk::~TinyDisk() { umount2(path_.c_str(), MNT_DETACH); }

absl::Status TinyDisk::Fill() {
  auto file = RealFileSystem().Create(filler());
  absl::Status written = file.status();
  const std::string page(4096, '\1');
  while (written.ok()) written = (*file)->Append(page);
  return absl::IsResourceExhausted(written) ? absl::OkStatus() : written;
}

absl::Status TinyDisk::Free() { return RealFileSystem().Remove(filler()); }

absl::Status TinyDisk::Resize(uint64_t bytes) { return MountAt(path_, bytes, MS_REMOUNT); }

}  // namespace sluice
