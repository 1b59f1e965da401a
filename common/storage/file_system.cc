#include "common/storage/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/base/input_file.h"

namespace sluice {
namespace {

constexpr mode_t kOwnerOnly = 0600;

absl::StatusCode CodeOf(int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::StatusCode::kResourceExhausted;
  }
  return error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable;
}

absl::Status Failed(absl::string_view act, const std::string& path, int error) {
  return absl::Status(CodeOf(error),
                      absl::StrCat("cannot ", act, " ", path, ": ",
                                   std::error_code(error, std::generic_category()).message()));
}

class RealWritableFile final : public WritableFile {
 public:
  RealWritableFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed("write", path_, errno);
      bytes.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t size) override {
    const bool cut = ftruncate(file_.get(), static_cast<off_t>(size)) == 0 &&
                     lseek(file_.get(), static_cast<off_t>(size), SEEK_SET) >= 0;
    return cut ? absl::OkStatus() : Failed("cut", path_, errno);
  }

  absl::Status Sync() override {
    return fdatasync(file_.get()) == 0 ? absl::OkStatus() : Failed("sync", path_, errno);
  }

 private:
  const std::string path_;
  const FileDescriptor file_;
};

class RealReadableFile final : public ReadableFile {
 public:
  RealReadableFile(std::string path, FileDescriptor file, uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  uint64_t size() const override { return size_; }

  absl::Status Read(uint64_t offset, absl::Span<char> to) const override {
    while (!to.empty()) {
      const ssize_t got = pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failed("read", path_, errno);
      if (got == 0) {
        return absl::DataLossError(
            absl::StrCat(path_, " ends at byte ", offset, ", expected ", to.size(), " more"));
      }
      to.remove_prefix(got);
      offset += got;
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const FileDescriptor file_;
  const uint64_t size_;
};

class SystemFiles final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    struct stat facts = {};
    const bool exists = stat(path.c_str(), &facts) == 0;
    const absl::Status regular = exists ? CheckRegular(path, facts) : absl::OkStatus();
    if (!regular.ok()) return absl::UnavailableError(regular.message());
    FileDescriptor file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, kOwnerOnly));
    if (!file.ok()) return Failed("create", path, errno);
    return std::make_unique<RealWritableFile>(path, std::move(file));
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    auto file = OpenInput(path);
    if (absl::IsNotFound(file.status())) return file.status();
    if (!file.ok()) return absl::UnavailableError(file.status().message());
    return std::make_unique<RealReadableFile>(path, std::move(file->descriptor),
                                              file->facts.st_size);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::error_code error;
    std::vector<std::string> names;
    auto entry = std::filesystem::directory_iterator(directory, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return Failed("list", directory, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : Failed("rename", from, errno);
  }

  absl::Status Remove(const std::string& path) override {
    return unlink(path.c_str()) == 0 ? absl::OkStatus() : Failed("remove", path, errno);
  }

  absl::Status SyncDirectory(const std::string& directory) override {
    const FileDescriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool synced = opened.ok() && fsync(opened.get()) == 0;
    return synced ? absl::OkStatus() : Failed("sync", directory, errno);
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static SystemFiles* const files = new SystemFiles();
  return *files;
}

}  // namespace sluice
