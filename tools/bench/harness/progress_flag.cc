#include "tools/bench/harness/progress_flag.h"

#include <algorithm>

#include "common/base/clock.h"

namespace sluice::bench {

void AddQuietFlag(CLI::App& app, bool& quiet) {
  app.add_flag("--quiet", quiet, "do not say on stderr how far the measurement is");
}

ProgressOutput ProgressUnless(bool quiet) {
  return quiet ? ProgressOutput() : ProgressOutput::OnStderr();
}

TimedProgress::TimedProgress(const char* doing, absl::Duration length, const ProgressOutput& output)
    : began_(RealClock().Now()),
      parts_(std::max(int64_t{1}, absl::ToInt64Milliseconds(length))),
      line_(doing, static_cast<uint64_t>(parts_), output, RealClock()) {}

void TimedProgress::Note() {
  const int64_t done = absl::ToInt64Milliseconds(RealClock().Now() - began_);
  line_.Reach(static_cast<uint64_t>(std::clamp(done, int64_t{0}, parts_)));
}

}  // namespace sluice::bench
