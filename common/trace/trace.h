// Records where a job's time goes: named spans, in a file that chrome://tracing and Perfetto show.
//
// With --trace a process writes its spans to a file. A server has a Trace also without a file,
// which a TraceCollector may read for a while. While nobody records, a span costs two comparisons.
//
//   const TraceSpan span(trace, "training", "encode");
//
// A row of the picture is a thread, or an activity such as one worker's pushes at the server. Spans
// of one row follow each other or contain each other. All times are the server's: a worker corrects
// its clock by round trips to the server.

#ifndef SLUICE_COMMON_TRACE_TRACE_H_
#define SLUICE_COMMON_TRACE_TRACE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/trace/clock_offset.h"
#include "common/trace/trace_event.h"
#include "common/trace/trace_file.h"

namespace sluice {

class TraceCollector;

// Any thread may use it. It collects spans in memory, and writes many at a time and the rest when
// it is destroyed. If the file cannot be written, it logs that once and records no more spans.
class Trace {
 public:
  // `process` is the name of this process: "server" or a worker's. `clock` outlives the trace.
  // Returns the errors of TraceFile::Open().
  static absl::StatusOr<std::unique_ptr<Trace>> Open(const std::string& path, Existing existing,
                                                     const std::string& process,
                                                     const Clock& clock);

  // Use Open(), or give no file.
  Trace(absl::optional<TraceFile> file, const std::string& process, const Clock& clock);
  ~Trace();

  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Whether somebody wants spans: there is a file, or a collector.
  bool records() const { return records_.load(std::memory_order_relaxed); }

  // Drawn at random: processes of several nodes or containers may have the same pid.
  uint32_t process() const { return process_; }
  const std::string& process_name() const { return process_name_; }

  // The time of this process's clock, as Add() takes it.
  absl::Time Now() const { return clock_.Now(); }

  // Adds a span from `begin` to `end`. `name` is a string literal. `step` is its step, if any.
  void Add(absl::string_view row, const char* name, absl::Time begin, absl::Time end,
           absl::optional<Step> step = absl::nullopt);

  // Notes a round trip to the server: `sent` and `received` by this clock, `answered` by the
  // server's.
  void NoteRoundTrip(absl::Time sent, absl::Time answered, absl::Time received);

 private:
  friend class TraceCollector;
  void Add(TraceCollector* collector) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(TraceCollector* collector) ABSL_LOCKS_EXCLUDED(mu_);

  int RowOf(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const std::vector<TraceEvent>& spans, absl::string_view names)
      ABSL_LOCKS_EXCLUDED(mu_);

  const Clock& clock_;
  const uint32_t process_;
  const std::string process_name_;
  const bool has_file_;
  std::atomic<bool> records_;

  absl::Mutex mu_;
  ClockOffset offset_ ABSL_GUARDED_BY(mu_);
  std::vector<TraceCollector*> collectors_ ABSL_GUARDED_BY(mu_);
  std::vector<TraceEvent> spans_ ABSL_GUARDED_BY(mu_);  // not written yet
  std::string names_ ABSL_GUARDED_BY(mu_);              // names of rows, not written yet
  absl::flat_hash_map<std::string, int> rows_ ABSL_GUARDED_BY(mu_);

  absl::Mutex file_mu_;  // never acquired while mu_ is held
  absl::optional<TraceFile> file_ ABSL_GUARDED_BY(file_mu_);
  bool lost_ ABSL_GUARDED_BY(file_mu_) = false;
};

// `trace`, if it records now; else null. `trace` may be null.
inline Trace* Recording(Trace* trace) {
  return trace != nullptr && trace->records() ? trace : nullptr;
}

// Adds a span from its construction to its destruction. Used by one thread.
class TraceSpan {
 public:
  // `row` outlives the span, and so does `trace`, unless it is null.
  TraceSpan(Trace* trace, absl::string_view row, const char* name,
            absl::optional<Step> step = absl::nullopt)
      : trace_(Recording(trace)), row_(row), name_(name), step_(step) {
    if (trace_ != nullptr) begin_ = trace_->Now();
  }
  ~TraceSpan() {
    if (trace_ != nullptr) trace_->Add(row_, name_, begin_, trace_->Now(), step_);
  }

  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  // Sets the step, if it was not known at first.
  void set_step(Step step) { step_ = step; }

 private:
  Trace* const trace_;
  const absl::string_view row_;
  const char* const name_;
  absl::optional<Step> step_;
  absl::Time begin_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TRACE_TRACE_H_
