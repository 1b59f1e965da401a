#include "server/web/history/run_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/file_descriptor.h"
#include "common/base/input_file.h"

namespace sluice {
namespace {

constexpr char kFile[] = "page-history";
constexpr size_t kMostTextBytes = 200;  // of each text of a run, which all browsers get

// Opens the history of a run; it has no value if there is none. Neither the run's directory nor the
// file may be a link: that could lead out of the directory of runs. A pipe is not waited for.
absl::optional<InputFile> OpenRun(int directory, const std::string& name) {
  const FileDescriptor run(
      openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!run.ok()) return absl::nullopt;
  InputFile file;
  file.descriptor =
      FileDescriptor(openat(run.get(), kFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const bool is_regular = file.descriptor.ok() && fstat(file.descriptor.get(), &file.facts) == 0 &&
                          CheckRegular(name, file.facts).ok();
  if (!is_regular) return absl::nullopt;
  return file;
}

// It has no value without rows, and if something of it is none that a server writes.
absl::optional<PastRun> RunOf(const std::string& name, const History& history) {
  PastRun run;
  run.name = name;
  run.job_id = history.job_id();
  run.facts = history.facts();
  for (const std::string* text : {&run.job_id, &run.facts.rules, &run.facts.verdict}) {
    if (text->size() > kMostTextBytes) return absl::nullopt;
  }
  const std::vector<HistorySample> rows = history.Rows();
  if (rows.empty()) return absl::nullopt;
  const auto first = std::find_if(rows.begin(), rows.end(), [](const HistorySample& row) {
    return std::isfinite(row.values[kLoss]);
  });
  run.begun = (first == rows.end() ? rows.front() : *first).values[kTime];
  run.seen = rows.back().values[kTime];
  run.step = rows.back().values[kStep];
  for (const double number : {run.begun, run.seen, run.step}) {
    if (!std::isfinite(number)) return absl::nullopt;
  }
  run.points = CurveOf(history, RunFiles::kMostPoints);
  return run;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

std::vector<RunPoint> CurveOf(const History& history, size_t most) {
  std::vector<RunPoint> all;
  for (const HistorySample& row : history.Rows()) {
    const RunPoint point = {row.values[kTime], row.values[kStep], row.values[kLoss]};
    const bool is_known =
        std::isfinite(point.time) && std::isfinite(point.step) && std::isfinite(point.loss);
    if (is_known) all.push_back(point);
  }
  const size_t rows = (all.size() + most - 1) / most;  // of a point
  if (rows < 2) return all;
  std::vector<RunPoint> points;
  for (size_t begin = 0; begin < all.size(); begin += rows) {
    const size_t end = std::min(begin + rows, all.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += all[i].loss;
    points.push_back(all[begin + (end - begin) / 2]);
    points.back().loss = sum / static_cast<double>(end - begin);
  }
  return points;
}

absl::StatusOr<std::vector<PastRun>> RunFiles::Read() {
  const FileDescriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot read the directory ", directory_, ": ",
                     std::error_code(errno, std::generic_category()).message()));
  }
  std::map<std::string, Known> known;
  std::vector<PastRun> runs;
  for (const auto& [stamp, name] : Newest(directory.get())) {
    const auto before = known_.find(name);
    const bool same = before != known_.end() && before->second.stamp == stamp;
    Known& one = known[name] = same ? std::move(before->second) : ReadOne(directory.get(), name);
    if (one.sound) runs.push_back(one.run);
  }
  known_ = std::move(known);
  std::sort(runs.begin(), runs.end(), [](const PastRun& a, const PastRun& b) {
    return a.begun != b.begun ? a.begun > b.begun : a.name < b.name;
  });
  return runs;
}

RunFiles::Stamp RunFiles::StampOf(const InputFile& file) {
  const struct stat& facts = file.facts;
  return {absl::TimeFromTimespec(facts.st_mtim), static_cast<uint64_t>(facts.st_size),
          facts.st_ino};
}

// If there are more entries than are looked at, it is not defined which ones are.
std::vector<std::pair<RunFiles::Stamp, std::string>> RunFiles::Newest(int directory) {
  std::vector<std::pair<Stamp, std::string>> found;
  FileDescriptor again(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  const std::unique_ptr<DIR, CloseDirectory> entries(again.ok() ? fdopendir(again.get()) : nullptr);
  if (entries == nullptr) return found;
  again.Release();  // closedir() closes it
  size_t seen = 0;
  while (const dirent* const entry = readdir(entries.get())) {
    if (++seen > kMostEntries) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const auto file = OpenRun(directory, name);
    if (file.has_value()) found.emplace_back(StampOf(*file), name);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first.written != b.first.written ? a.first.written > b.first.written
                                              : a.second < b.second;
  });
  found.resize(std::min(found.size(), kMostRuns));
  return found;
}

RunFiles::Known RunFiles::ReadOne(int directory, const std::string& name) {
  Known known;
  const auto file = OpenRun(directory, name);
  if (!file.has_value()) return known;
  const auto bytes = ReadInput(*file, name, kMostBytes);
  // Without a stamp it is read again: an error of the disk may pass. A file that is too large
  // stays.
  if (bytes.ok() || absl::IsInvalidArgument(bytes.status())) known.stamp = StampOf(*file);
  History history;
  if (!bytes.ok() || !history.Decode(*bytes).ok()) return known;
  auto run = RunOf(name, history);
  known.sound = run.has_value();
  if (known.sound) known.run = *std::move(run);
  return known;
}

}  // namespace sluice
