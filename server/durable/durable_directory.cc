#include "server/durable/durable_directory.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace sluice {
namespace {

// The empty file that says which life began at which step.
struct LifeMark {
  static constexpr char kPrefix[] = "life-";

  Incarnation incarnation;
  Step step;

  std::string FileName() const {
    return absl::StrFormat("%s%06d-%012d", kPrefix, incarnation.value(), step.value());
  }

  static absl::optional<LifeMark> Parse(absl::string_view name) {
    if (!absl::ConsumePrefix(&name, kPrefix)) return absl::nullopt;
    uint64_t incarnation = 0;
    uint64_t step = 0;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(name, absl::MaxSplits('-', 1));
    if (!absl::SimpleAtoi(parts.first, &incarnation) || !absl::SimpleAtoi(parts.second, &step)) {
      return absl::nullopt;
    }
    return LifeMark{Incarnation(incarnation), Step(step)};
  }
};

std::string ThisProcess() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("process ", getpid(), " on ", host);
}

}  // namespace

DurableDirectory::DurableDirectory(const DurableOptions& options, FileSystem& files)
    : options_(options),
      files_(files),
      checkpoints_(files, options.directory, options.keep_checkpoints) {}

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::Open(
    const DurableOptions& options, FileSystem& files) {
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make the directory ", options.directory, ": ", error.message()));
  }
  std::unique_ptr<DurableDirectory> directory(new DurableDirectory(options, files));
  auto lock = FileLock::Take(options.directory + "/LOCK", ThisProcess());
  if (!lock.ok()) return lock.status();
  directory->lock_ = *std::move(lock);
  absl::Status opened = directory->Restore();
  if (opened.ok()) opened = directory->BeginLife();
  if (!opened.ok()) return opened;
  return directory;
}

absl::Status DurableDirectory::Restore() {
  const absl::Status removed = checkpoints_.RemoveUnfinished();
  if (!removed.ok()) return removed;
  auto restored = checkpoints_.LoadNewest();
  if (!restored.ok()) return restored.status();
  restored_ = *std::move(restored);
  return absl::OkStatus();
}

// Its number follows all that were used. What earlier lives left no checkpoint of, they began on
// what is restored now, or before it.
absl::Status DurableDirectory::BeginLife() {
  const auto files = files_.List(options_.directory);
  if (!files.ok()) return files.status();
  const Step begin = restored_ == nullptr ? Step() : restored_->step;
  std::vector<LifeMark> earlier;
  for (const std::string& file : *files) {
    const auto mark = LifeMark::Parse(file);
    const auto checkpoint = CheckpointName::Parse(file);
    if (checkpoint.has_value()) incarnation_ = std::max(incarnation_, checkpoint->incarnation);
    if (!mark.has_value()) continue;
    incarnation_ = std::max(incarnation_, mark->incarnation);
    earlier.push_back(*mark);
  }
  incarnation_ = incarnation_.Next();
  for (const LifeMark& mark : earlier) {
    if (restored_ == nullptr) break;
    if (mark.incarnation > restored_->lineage.current()) {
      restored_->lineage.AddAncestor(mark.incarnation, std::min(mark.step, begin));
    } else {
      // What was restored knows of it.
      files_.Remove(options_.directory + "/" + mark.FileName()).IgnoreError();
    }
  }
  const LifeMark now = {incarnation_, begin};
  auto file = files_.Create(options_.directory + "/" + now.FileName());
  if (!file.ok()) return file.status();
  return files_.SyncDirectory(options_.directory);
}

void DurableDirectory::Save(std::shared_ptr<const ShardImage> image, SaveCallback done) {
  ++saving_;
  background_.Run([this, image = std::move(image), done = std::move(done)] {
    const auto saved = SaveNow(*image);
    --saving_;
    if (done) done(saved);
  });
}

void DurableDirectory::SaveUnlessBusy(std::shared_ptr<const ShardImage> image) {
  if (saving_ > 0) {
    LOG(WARNING) << "step " << image->step << " gets no checkpoint, since the one before is still "
                 << "being written; make --checkpoint-every larger than " << checkpoint_every();
    return;
  }
  Save(std::move(image), nullptr);
}

absl::StatusOr<SavedCheckpoint> DurableDirectory::SaveNow(const ShardImage& image) {
  const absl::Time began = absl::Now();
  auto path = checkpoints_.Save(image);
  if (!path.ok()) {
    LOG(ERROR) << "no checkpoint of step " << image.step << ": " << path.status().message();
    return path.status();
  }
  LOG(INFO) << "saved " << *path << " in " << absl::FormatDuration(absl::Now() - began)
            << "; training paused for " << absl::FormatDuration(image.pause);
  return SavedCheckpoint{*std::move(path), image.step};
}

}  // namespace sluice
