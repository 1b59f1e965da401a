#include "tests/testing/durable/failpoints.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

// What a path is, as points name it.
std::string KindOf(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (const char* kind : {"journal", "checkpoint", "stripe", "rows", "life", "kept"}) {
    if (absl::StartsWith(name, kind)) return kind;
  }
  return name;
}

}  // namespace

absl::StatusOr<Failpoint> Failpoint::Parse(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Failpoint point;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &point.times) && point.times > 0) {
    point.name = parts[0];
    return point;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no failpoint; expected a name and how often it is reached, as in ",
      "journal.sync.before:3"));
}

class FailpointFiles::Writer final : public WritableFile {
 public:
  Writer(FailpointFiles& points, std::string kind, std::unique_ptr<WritableFile> file)
      : points_(points), kind_(std::move(kind)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    points_.Reach(kind_, "write", "before");
    if (points_.IsAt(kind_, "write", "torn")) {
      const absl::Status half = file_->Append(bytes.substr(0, bytes.size() / 2));
      if (!half.ok()) return half;
      points_.Reach(kind_, "write", "torn");
      bytes.remove_prefix(bytes.size() / 2);
    }
    const absl::Status written = file_->Append(bytes);
    if (written.ok()) points_.Reach(kind_, "write", "after");
    return written;
  }

  absl::Status Truncate(uint64_t size) override { return file_->Truncate(size); }

  absl::Status Sync() override {
    points_.Reach(kind_, "sync", "before");
    const absl::Status synced = file_->Sync();
    if (synced.ok()) points_.Reach(kind_, "sync", "after");
    return synced;
  }

 private:
  FailpointFiles& points_;
  const std::string kind_;
  const std::unique_ptr<WritableFile> file_;
};

bool FailpointFiles::IsAt(absl::string_view file, absl::string_view operation,
                          absl::string_view when) const {
  return point_.name == absl::StrCat(file, ".", operation, ".", when);
}

void FailpointFiles::Reach(absl::string_view file, absl::string_view operation,
                           absl::string_view when) {
  if (!IsAt(file, operation, when)) return;
  {
    absl::MutexLock lock(&mu_);
    if (++reached_ != point_.times) return;
  }
  act_();
}

void FailpointFiles::NoteChange(const std::string& file) {
  absl::MutexLock lock(&mu_);
  changed_[std::this_thread::get_id()] = file;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FailpointFiles::Create(const std::string& path) {
  const std::string kind = KindOf(path);
  Reach(kind, "create", "before");
  auto file = files_.Create(path);
  if (!file.ok()) return file;
  NoteChange(kind);
  Reach(kind, "create", "after");
  return std::make_unique<Writer>(*this, kind, *std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FailpointFiles::Open(const std::string& path) {
  return files_.Open(path);
}

absl::StatusOr<std::vector<std::string>> FailpointFiles::List(const std::string& directory) {
  return files_.List(directory);
}

absl::Status FailpointFiles::Rename(const std::string& from, const std::string& to) {
  const std::string kind = KindOf(to);
  Reach(kind, "rename", "before");
  const absl::Status renamed = files_.Rename(from, to);
  if (!renamed.ok()) return renamed;
  NoteChange(kind);
  Reach(kind, "rename", "after");
  return renamed;
}

absl::Status FailpointFiles::Remove(const std::string& path) {
  const std::string kind = KindOf(path);
  Reach(kind, "remove", "before");
  const absl::Status removed = files_.Remove(path);
  if (!removed.ok()) return removed;
  NoteChange(kind);
  Reach(kind, "remove", "after");
  return removed;
}

absl::Status FailpointFiles::SyncDirectory(const std::string& directory) {
  std::string kind;
  {
    absl::MutexLock lock(&mu_);
    kind = changed_[std::this_thread::get_id()];
  }
  Reach(kind, "sync-directory", "before");
  const absl::Status synced = files_.SyncDirectory(directory);
  if (synced.ok()) Reach(kind, "sync-directory", "after");
  return synced;
}

}  // namespace sluice
