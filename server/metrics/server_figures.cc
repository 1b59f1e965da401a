#include "server/metrics/server_figures.h"

#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/process_memory.h"

namespace sluice {

ServerFigures FiguresOf(Shard& shard, const DurableDirectory* durable) {
  ServerFigures figures;
  figures.status = shard.Describe();
  figures.executor_tasks = shard.executors().Tasks();
  if (durable != nullptr && durable->checkpoint_every() > 0) {
    figures.checkpoint_age = RealClock().Now() - durable->saved_at();
  }
  return figures;
}

ProcessFigures FiguresOfThisProcess() {
  ProcessFigures figures;
  figures.resident_bytes = ReadProcessMemory().resident;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  figures.cpu =
      absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  return figures;
}

}  // namespace sluice
