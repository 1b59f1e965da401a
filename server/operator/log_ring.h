// The latest lines of this process's log, in bounded memory, for Admin and the live page.

#ifndef SLUICE_SERVER_OPERATOR_LOG_RING_H_
#define SLUICE_SERVER_OPERATOR_LOG_RING_H_

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sluice {

struct LoggedLine {
  uint64_t number = 0;   // from 1, without a gap
  absl::Time time;       // of day
  std::string severity;  // INFO, WARNING, ERROR or FATAL
  std::string source;    // "server.cc:140"
  std::string text;      // UTF-8
};

// Takes each line that is logged while it exists. Any thread may use it.
class LogRing final : public google::LogSink {
 public:
  static constexpr size_t kMostLines = 1000;      // the oldest make room
  static constexpr size_t kMostLineBytes = 1024;  // of a text; the rest is cut off

  LogRing() { google::AddLogSink(this); }
  ~LogRing() override { google::RemoveLogSink(this); }
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  // The lines after that number that are still there, in their order, at most the newest `most`.
  std::vector<LoggedLine> After(uint64_t number, size_t most) const ABSL_LOCKS_EXCLUDED(mu_);

  // glog calls it with a lock of its own held.
  void send(google::LogSeverity severity, const char* full_filename, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            size_t message_len) override ABSL_LOCKS_EXCLUDED(mu_);
  using google::LogSink::send;

 private:
  mutable absl::Mutex mu_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<LoggedLine> lines_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPERATOR_LOG_RING_H_
