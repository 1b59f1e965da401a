#include "server/replica/executors.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "common/base/serial_executor.h"
#include "common/base/thread_pool.h"

namespace sluice {
namespace {

// As many as gRPC has threads that read, which did this work before; but on two cores one.
uint32_t ArrivalThreads() { return std::min(std::max(ThreadPool::UsableCores() / 2, 1U), 16U); }

}  // namespace

Executors Executors::Inline() {
  return {absl::make_unique<InlineExecutor>(), absl::make_unique<InlineExecutor>(),
          absl::make_unique<InlineExecutor>(), absl::make_unique<InlineExecutor>(),
          absl::make_unique<InlineExecutor>()};
}

Executors Executors::OnThreads() {
  return {absl::make_unique<ExecutorPool>(ArrivalThreads(), "sluice-arrive"),
          absl::make_unique<SerialExecutor>("sluice-step"),
          absl::make_unique<SerialExecutor>("sluice-encode"),
          absl::make_unique<SerialExecutor>("sluice-summary"),
          absl::make_unique<SerialExecutor>("sluice-hook")};
}

// In the order in which one kind of work follows another.
void Executors::Drain() {
  for (Executor* const executor :
       {arrivals.get(), steps.get(), files.get(), encodings.get(), summaries.get(), hooks.get()}) {
    executor->Drain();
  }
}

std::map<std::string, size_t> Executors::Tasks() const {
  return {{"arrive", arrivals->tasks()},
          {"step", steps->tasks()},
          {"encode", encodings->tasks()},
          {"summary", summaries->tasks()},
          {"hook", hooks->tasks()}};
}

}  // namespace sluice
