#include "common/trace/trace.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/random.h"
#include "common/trace/trace_collector.h"

namespace sluice {
namespace {

constexpr size_t kSpansPerWrite = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<Trace>> Trace::Open(const std::string& path, Existing existing,
                                                   const std::string& process, const Clock& clock) {
  auto file = TraceFile::Open(path, existing);
  if (!file.ok()) return file.status();
  return std::make_unique<Trace>(*std::move(file), process, clock);
}

Trace::Trace(absl::optional<TraceFile> file, const std::string& process, const Clock& clock)
    : clock_(clock),
      process_(static_cast<uint32_t>(RandomNonce().value() >> 33)),
      process_name_(process),
      has_file_(file.has_value()),
      records_(has_file_),
      file_(std::move(file)) {
  if (has_file_) AppendName("process_name", process_, 0, process, &names_);
}

Trace::~Trace() {
  std::vector<TraceEvent> spans;
  std::string names;
  {
    absl::MutexLock lock(&mu_);
    spans.swap(spans_);
    names.swap(names_);
  }
  Write(spans, names);
}

void Trace::Add(absl::string_view row, const char* name, absl::Time begin, absl::Time end,
                absl::optional<Step> step) {
  std::vector<TraceEvent> full;
  std::string names;
  {
    absl::MutexLock lock(&mu_);
    // The system's clock may have been set back.
    const absl::Duration duration = std::max(end - begin, absl::ZeroDuration());
    const TraceEvent span = {RowOf(row), name, begin + offset_.offset(), duration, step};
    for (TraceCollector* const collector : collectors_) collector->Note(span, row);
    if (!has_file_) return;
    spans_.push_back(span);
    if (spans_.size() < kSpansPerWrite) return;
    full.swap(spans_);
    names.swap(names_);
  }
  Write(full, names);
}

void Trace::NoteRoundTrip(absl::Time sent, absl::Time answered, absl::Time received) {
  absl::MutexLock lock(&mu_);
  offset_.Note(sent, answered, received);
}

int Trace::RowOf(absl::string_view name) {
  const auto known = rows_.find(name);
  if (known != rows_.end()) return known->second;
  const int row = static_cast<int>(rows_.size()) + 1;
  rows_.emplace(name, row);
  if (has_file_) AppendName("thread_name", process_, row, name, &names_);
  return row;
}

void Trace::Add(TraceCollector* collector) {
  absl::MutexLock lock(&mu_);
  collectors_.push_back(collector);
  records_ = true;
}

void Trace::Remove(TraceCollector* collector) {
  absl::MutexLock lock(&mu_);
  collectors_.erase(absl::c_find(collectors_, collector));
  records_ = has_file_ || !collectors_.empty();
}

void Trace::Write(const std::vector<TraceEvent>& spans, absl::string_view names) {
  if (spans.empty()) return;
  std::string events(names);
  for (const TraceEvent& span : spans) AppendSpan(span, process_, &events);
  absl::MutexLock lock(&file_mu_);
  if (lost_ || !file_.has_value()) return;
  const absl::Status written = file_->Append(events);
  lost_ = !written.ok();
  LOG_IF(WARNING, lost_) << written.message() << "; the trace ends here, and training continues";
}

}  // namespace sluice
