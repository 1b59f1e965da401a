#include "tests/testing/durable/faulty_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

absl::Status NoSuchFile(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("cannot read ", path, ": No such file or directory"));
}

// From 0 to `most`.
uint64_t UpTo(uint64_t most, std::mt19937_64& random) {
  return std::uniform_int_distribution<uint64_t>(0, most)(random);
}

}  // namespace

class FaultyFiles::Writer final : public WritableFile {
 public:
  Writer(FaultyFiles& disk, std::shared_ptr<File> file) : disk_(disk), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    absl::MutexLock lock(&disk_.mu_);
    const absl::Status step = disk_.Step();
    if (!step.ok()) return step;
    const uint64_t fits = std::min<uint64_t>(bytes.size(), disk_.room_.value_or(bytes.size()));
    if (disk_.room_.has_value()) *disk_.room_ -= fits;
    absl::StrAppend(&file_->bytes, bytes.substr(0, fits));
    if (fits == bytes.size()) return absl::OkStatus();
    return absl::ResourceExhaustedError("cannot write: No space left on device");
  }

  absl::Status Truncate(uint64_t size) override {
    absl::MutexLock lock(&disk_.mu_);
    const absl::Status step = disk_.Step();
    if (!step.ok()) return step;
    if (disk_.room_.has_value()) *disk_.room_ += file_->bytes.size() - size;
    file_->bytes.resize(size);
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    absl::MutexLock lock(&disk_.mu_);
    const absl::Status step = disk_.Step();
    if (step.ok()) file_->synced = file_->bytes;
    return step;
  }

 private:
  FaultyFiles& disk_;
  const std::shared_ptr<File> file_;
};

class FaultyFiles::Reader final : public ReadableFile {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  uint64_t size() const override { return bytes_.size(); }

  absl::Status Read(uint64_t offset, absl::Span<char> to) const override {
    if (offset > bytes_.size() || to.size() > bytes_.size() - offset) {
      return absl::DataLossError(absl::StrCat("the file ends at byte ", bytes_.size()));
    }
    std::copy_n(bytes_.begin() + static_cast<int64_t>(offset), to.size(), to.begin());
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
};

absl::Status FaultyFiles::Step() {
  if (!left_.has_value()) return absl::OkStatus();
  if (*left_ == 0) return absl::UnavailableError("the machine has stopped");
  --*left_;
  return absl::OkStatus();
}

void FaultyFiles::Apply(const Change& change, Names* names) const {
  if (change.second == nullptr) {
    names->erase(change.first);
  } else {
    (*names)[change.first] = change.second;
  }
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFiles::Create(const std::string& path) {
  absl::MutexLock lock(&mu_);
  const absl::Status step = Step();
  if (!step.ok()) return step;
  auto file = std::make_shared<File>();
  unsynced_.push_back({{path, file}});
  Apply(unsynced_.back().front(), &names_);
  return std::make_unique<Writer>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultyFiles::Open(const std::string& path) {
  absl::MutexLock lock(&mu_);
  const auto found = names_.find(path);
  if (found == names_.end()) return NoSuchFile(path);
  return std::make_unique<Reader>(found->second->bytes);
}

absl::StatusOr<std::vector<std::string>> FaultyFiles::List(const std::string& directory) {
  absl::MutexLock lock(&mu_);
  if (names_.count(directory) > 0) {
    return absl::UnavailableError(absl::StrCat("cannot list ", directory, ": it is a file"));
  }
  std::vector<std::string> found;
  const std::string prefix = directory + "/";
  for (const auto& name : names_) {
    if (absl::StartsWith(name.first, prefix)) found.push_back(name.first.substr(prefix.size()));
  }
  return found;
}

absl::Status FaultyFiles::Rename(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mu_);
  const absl::Status step = Step();
  if (!step.ok()) return step;
  const auto found = names_.find(from);
  if (found == names_.end()) return NoSuchFile(from);
  unsynced_.push_back({{to, found->second}, {from, nullptr}});
  for (const Change& change : unsynced_.back()) Apply(change, &names_);
  return absl::OkStatus();
}

absl::Status FaultyFiles::Remove(const std::string& path) {
  absl::MutexLock lock(&mu_);
  const absl::Status step = Step();
  if (!step.ok()) return step;
  if (names_.count(path) == 0) return NoSuchFile(path);
  unsynced_.push_back({{path, nullptr}});
  Apply(unsynced_.back().front(), &names_);
  return absl::OkStatus();
}

absl::Status FaultyFiles::SyncDirectory(const std::string& /*directory*/) {
  absl::MutexLock lock(&mu_);
  const absl::Status step = Step();
  if (!step.ok()) return step;
  synced_names_ = names_;
  unsynced_.clear();
  return absl::OkStatus();
}

void FaultyFiles::Lose(File& file, std::mt19937_64& random) {
  // What was synced last, or, of a file that has only grown since, that and a part of the rest.
  const bool grown = absl::StartsWith(file.bytes, file.synced);
  if (grown) {
    const uint64_t fresh = file.bytes.size() - file.synced.size();
    file.bytes.resize(file.synced.size() + UpTo(fresh, random));
    const uint64_t kept = file.bytes.size() - file.synced.size();
    const uint64_t hole = UpTo(kept, random);
    const bool torn = UpTo(1, random) == 1;
    if (torn) std::fill_n(file.bytes.begin() + file.synced.size() + (kept - hole), hole, '\0');
  } else if (UpTo(1, random) == 1) {
    file.bytes = file.synced;
  }
  file.synced = file.bytes;
}

void FaultyFiles::Crash(std::mt19937_64& random) {
  absl::MutexLock lock(&mu_);
  Names names = synced_names_;
  for (const std::vector<Change>& operation : unsynced_) {
    if (UpTo(1, random) == 0) continue;
    for (const Change& change : operation) Apply(change, &names);
  }
  for (const auto& name : names) Lose(*name.second, random);
  names_ = names;
  synced_names_ = std::move(names);
  unsynced_.clear();
  left_ = absl::nullopt;
}

void FaultyFiles::LoseUnsynced() {
  absl::MutexLock lock(&mu_);
  names_ = synced_names_;
  unsynced_.clear();
  for (const auto& name : names_) name.second->bytes = name.second->synced;
  left_ = absl::nullopt;
}

}  // namespace sluice
