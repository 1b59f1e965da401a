#include "server/events/event_files.h"

#include <utility>

#include "common/base/serial_executor.h"
#include "server/events/record_file.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<EventFiles>> EventFiles::Open(const EventFileOptions& options) {
  std::unique_ptr<JsonLog> json;
  if (!options.json_log.empty()) {
    auto append = OpenToAppend(options.json_log);
    if (!append.ok()) return append.status();
    json = std::make_unique<JsonLog>(std::make_unique<RecordFile>(
        options.json_log, *std::move(append), std::make_unique<SerialExecutor>("sluice-events")));
  }
  return std::unique_ptr<EventFiles>(new EventFiles(std::move(json)));
}

void EventFiles::Look(absl::Time now, absl::FunctionRef<JobMoment()> get) {
  if (!any() || now < next_) return;
  next_ = now + kPeriod;
  Take(get());
}

void EventFiles::End(absl::FunctionRef<JobMoment()> get) {
  if (!any()) return;
  const JobMoment last = get();
  Take(last);
  if (json_ != nullptr) json_->End(last);
}

void EventFiles::Take(const JobMoment& moment) {
  const JobNews news = changes_.Look(moment);
  if (json_ != nullptr) json_->Look(moment, news);
}

}  // namespace sluice
