// The flag --quiet of each benchmark. Without it a long measurement says on stderr how far it is.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PROGRESS_FLAG_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PROGRESS_FLAG_H_

#include <CLI/CLI.hpp>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/progress_line.h"

namespace sluice::bench {

// Adds --quiet to `app`; `quiet` outlives it.
void AddQuietFlag(CLI::App& app, bool& quiet);

ProgressOutput ProgressUnless(bool quiet);

// Work that takes a time that is known from the beginning.
class TimedProgress {
 public:
  TimedProgress(const char* doing, absl::Duration length, const ProgressOutput& output);

  // Call it several times a second.
  void Note();

 private:
  const absl::Time began_;
  const int64_t parts_;  // milliseconds
  ProgressLine line_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PROGRESS_FLAG_H_
