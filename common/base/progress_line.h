// Says how far long work is, and how long it will still take.

#ifndef SLUICE_COMMON_BASE_PROGRESS_LINE_H_
#define SLUICE_COMMON_BASE_PROGRESS_LINE_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace sluice {

// Where it is said. If nothing is set, nothing is said.
struct ProgressOutput {
  // On stderr: a bar if that is a terminal, otherwise lines.
  static ProgressOutput OnStderr();
  // Lines of the log.
  static ProgressOutput InLog();

  std::ostream* terminal = nullptr;               // shows a bar that is renewed five times a second
  std::function<void(const std::string&)> lines;  // gets a line without its end every 10 s
};

// Used by one thread. Removes the bar in the end.
class ProgressLine {
 public:
  // `doing` says what is done, for example "reading run1/a.safetensors". The work has `total`
  // parts of the same size, at least 1. `clock` and the terminal outlive this.
  ProgressLine(std::string doing, uint64_t total, ProgressOutput output, const Clock& clock);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Notes that so many parts are done, in all. Says so if the last time is long enough ago.
  void Reach(uint64_t done);

 private:
  std::string Share(uint64_t done) const;
  std::string TimeLeft(uint64_t done, absl::Time now) const;
  std::string Bar(uint64_t done) const;

  const std::string doing_;
  const uint64_t total_;
  const ProgressOutput output_;
  const Clock& clock_;
  const absl::Time began_;
  absl::Time said_;
  bool shown_ = false;  // a bar is on the terminal
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_PROGRESS_LINE_H_
