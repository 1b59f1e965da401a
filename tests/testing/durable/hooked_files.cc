#include "tests/testing/durable/hooked_files.h"

#include <utility>

namespace sluice {

class HookedFiles::Writer final : public WritableFile {
 public:
  Writer(const HookedFiles& files, std::string path, std::unique_ptr<WritableFile> file)
      : hook_(files.hook_), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    const absl::Status asked = hook_(FileOperation::kAppend, path_);
    return asked.ok() ? file_->Append(bytes) : asked;
  }

  absl::Status Truncate(uint64_t size) override {
    const absl::Status asked = hook_(FileOperation::kTruncate, path_);
    return asked.ok() ? file_->Truncate(size) : asked;
  }

  absl::Status Sync() override {
    const absl::Status asked = hook_(FileOperation::kSync, path_);
    return asked.ok() ? file_->Sync() : asked;
  }

 private:
  const FileHook hook_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

absl::StatusOr<std::unique_ptr<WritableFile>> HookedFiles::Create(const std::string& path) {
  const absl::Status asked = hook_(FileOperation::kCreate, path);
  if (!asked.ok()) return asked;
  auto file = files_.Create(path);
  if (!file.ok()) return file;
  return std::make_unique<Writer>(*this, path, *std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> HookedFiles::Open(const std::string& path) {
  return files_.Open(path);
}

absl::StatusOr<std::vector<std::string>> HookedFiles::List(const std::string& directory) {
  return files_.List(directory);
}

absl::Status HookedFiles::Rename(const std::string& from, const std::string& to) {
  const absl::Status asked = hook_(FileOperation::kRename, to);
  return asked.ok() ? files_.Rename(from, to) : asked;
}

absl::Status HookedFiles::Remove(const std::string& path) {
  const absl::Status asked = hook_(FileOperation::kRemove, path);
  return asked.ok() ? files_.Remove(path) : asked;
}

absl::Status HookedFiles::SyncDirectory(const std::string& directory) {
  const absl::Status asked = hook_(FileOperation::kSyncDirectory, directory);
  return asked.ok() ? files_.SyncDirectory(directory) : asked;
}

}  // namespace sluice
