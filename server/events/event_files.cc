#include "server/events/event_files.h"

#include <glog/logging.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "common/base/serial_executor.h"
#include "server/events/record_file.h"

namespace sluice {

namespace {

// Each file has a thread, so that one on a slow disk does not hold the other up.
absl::StatusOr<std::unique_ptr<RecordFile>> OpenRecords(const std::string& path) {
  auto append = OpenToAppend(path);
  if (!append.ok()) return append.status();
  return std::make_unique<RecordFile>(path, *std::move(append),
                                      std::make_unique<SerialExecutor>("sluice-events"));
}

absl::StatusOr<std::unique_ptr<RecordFile>> OpenEventFile(const std::string& directory,
                                                          absl::Time now) {
  const absl::Status made = MakeEventDirectory(directory);
  if (!made.ok()) return made;
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) return absl::InternalError("no host name");
  return OpenRecords(EventFilePath(directory, now, host.data()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventFiles>> EventFiles::Open(const EventFileOptions& options,
                                                             absl::Time now) {
  std::unique_ptr<JsonLog> json;
  if (!options.json_log.empty()) {
    auto records = OpenRecords(options.json_log);
    if (!records.ok()) return records.status();
    json = std::make_unique<JsonLog>(*std::move(records));
  }
  std::unique_ptr<TensorBoardLog> tensorboard;
  if (!options.tensorboard.empty()) {
    auto records = OpenEventFile(options.tensorboard, now);
    if (!records.ok()) return records.status();
    tensorboard = std::make_unique<TensorBoardLog>(*std::move(records), now);
  }
  return std::unique_ptr<EventFiles>(new EventFiles(std::move(json), std::move(tensorboard)));
}

void EventFiles::Look(absl::Time now, absl::FunctionRef<JobMoment()> get) {
  if (now < next_) return;
  next_ = now + kPeriod;
  Take(get());
}

void EventFiles::End(absl::FunctionRef<JobMoment()> get) {
  const JobMoment last = get();
  Take(last);
  if (json_ != nullptr) json_->End(last);
  if (tensorboard_ != nullptr) tensorboard_->End();
}

void EventFiles::Take(const JobMoment& moment) {
  const JobNews news = changes_.Look(moment);
  for (const std::string& line : story_.Look(moment, news)) LOG(INFO) << line;
  if (json_ != nullptr) json_->Look(moment, news);
  if (tensorboard_ != nullptr) tensorboard_->Look(moment, news);
}

}  // namespace sluice
