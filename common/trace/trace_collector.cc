#include "common/trace/trace_collector.h"

#include <utility>

namespace sluice {

TraceCollector::TraceCollector(Trace& trace) : trace_(trace) {
  AppendName("process_name", trace.process(), 0, trace.process_name(), &names_);
  trace_.Add(this);
}

TraceCollector::~TraceCollector() { trace_.Remove(this); }

void TraceCollector::Note(const TraceEvent& span, absl::string_view row) {
  const absl::MutexLock lock(&mu_);
  if (waiting_.size() == kMostWaiting) {
    ++missed_;
    return;
  }
  if (named_rows_.insert(span.row).second) {
    AppendName("thread_name", trace_.process(), span.row, row, &names_);
  }
  waiting_.push_back(span);
}

TraceCollector::Taken TraceCollector::Take() {
  Taken taken;
  std::vector<TraceEvent> spans;
  {
    const absl::MutexLock lock(&mu_);
    spans.swap(waiting_);
    taken.events.swap(names_);
    taken.missed = std::exchange(missed_, 0);
  }
  taken.spans = spans.size();
  for (const TraceEvent& span : spans) AppendSpan(span, trace_.process(), &taken.events);
  return taken;
}

}  // namespace sluice
