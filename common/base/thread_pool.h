// A Parallel with a fixed number of threads: the threads that do the arithmetic.

#ifndef SLUICE_COMMON_BASE_THREAD_POOL_H_
#define SLUICE_COMMON_BASE_THREAD_POOL_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/parallel.h"

namespace sluice {

// Owns its threads, which sleep while there is no work. Each free thread takes the next part of a
// For(). If several For() run at once, the threads help the first; the others' callers work alone.
class ThreadPool final : public Parallel {
 public:
  // The number of cores that this process may use.
  static uint32_t UsableCores();

  // `threads`, at least 1, counts the caller of For(), too.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool() override;

  // Runs a single part on the calling thread, without waking another.
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override;

 private:
  struct Task;

  void Serve();
  void WorkOn(Task& task) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar work_;                         // there is a task, or the pool ends
  absl::CondVar done_;                         // a thread has stopped working on a task
  Task* task_ ABSL_GUARDED_BY(mu_) = nullptr;  // the task that the threads help
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_THREAD_POOL_H_
