// Where a job's time goes: named spans of it, in a file that chrome://tracing and Perfetto show.
//
// Each process of a job has a trace, if it was asked for, and a null pointer otherwise: what is
// traced takes a Trace*, and costs one comparison without one.
//
//   const TraceSpan span(trace, "training", "encode");
//
// A row of the picture is a thread, or what goes on beside the threads, such as the pushes of one
// worker that arrive at the server. The spans of one row lie apart or within each other. All times
// are the server's: a worker's clock is corrected by what round trips to the server tell.

#ifndef SLUICE_COMMON_TRACE_TRACE_H_
#define SLUICE_COMMON_TRACE_TRACE_H_

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
#include "common/trace/trace_file.h"

namespace sluice {

// May be used by any thread. Spans are kept in memory and written many at a time, and at the end.
// If they cannot be written, a line in the log says so once, and there are no more of them.
class Trace {
 public:
  // Of the process of that name, "server" or a worker's. `clock` outlives it. As TraceFile::Open.
  static absl::StatusOr<std::unique_ptr<Trace>> Open(const std::string& path, Existing existing,
                                                     const std::string& process,
                                                     const Clock& clock);

  // Use Open().
  Trace(TraceFile file, const std::string& process, const Clock& clock);
  ~Trace();

  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // This process's clock, uncorrected; for Add().
  absl::Time Now() const { return clock_.Now(); }

  // Something went on from `begin` to `end`. `name` is a literal. `step`: which step it is about.
  void Add(absl::string_view row, const char* name, absl::Time begin, absl::Time end,
           absl::optional<Step> step = absl::nullopt);

  // The server answered at `answered`, by its clock, what was sent and received by this one's.
  void NoteRoundTrip(absl::Time sent, absl::Time answered, absl::Time received);

 private:
  struct Span {
    int row = 0;
    const char* name = "";
    absl::Time begin;  // by the server's clock
    absl::Duration duration;
    absl::optional<Step> step;
  };

  int RowOf(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const std::vector<Span>& spans, absl::string_view names) ABSL_LOCKS_EXCLUDED(mu_);

  const Clock& clock_;
  // Drawn at random: processes of several nodes, or containers, may have the same number.
  const uint32_t process_;

  absl::Mutex mu_;
  ClockOffset offset_ ABSL_GUARDED_BY(mu_);
  std::vector<Span> spans_ ABSL_GUARDED_BY(mu_);  // not written yet, and the names they need
  std::string names_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, int> rows_ ABSL_GUARDED_BY(mu_);

  absl::Mutex file_mu_;  // never taken by whoever holds mu_
  TraceFile file_ ABSL_GUARDED_BY(file_mu_);
  bool lost_ ABSL_GUARDED_BY(file_mu_) = false;
};

// What goes on for as long as it lives. For one thread.
class TraceSpan {
 public:
  // `trace`, unless it is null, and `row` outlive it.
  TraceSpan(Trace* trace, absl::string_view row, const char* name,
            absl::optional<Step> step = absl::nullopt)
      : trace_(trace), row_(row), name_(name), step_(step) {
    if (trace_ != nullptr) begin_ = trace_->Now();
  }
  ~TraceSpan() {
    if (trace_ != nullptr) trace_->Add(row_, name_, begin_, trace_->Now(), step_);
  }

  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  // Which step it is about, if that was not known at first.
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
