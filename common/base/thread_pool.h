// The threads that do the arithmetic.

#ifndef SLUICE_COMMON_BASE_THREAD_POOL_H_
#define SLUICE_COMMON_BASE_THREAD_POOL_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/parallel.h"

namespace sluice {

// A fixed number of threads, made with it and joined with it, that sleep while there is nothing to
// do. The parts of one For() are handed out one after the other to whoever is free. Of several
// For() at once, they help the first.
class ThreadPool final : public Parallel {
 public:
  // Of the processor's cores, those that this process may run on.
  static uint32_t UsableCores();

  // `threads` in all, the caller of For() among them: at least 1.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool() override;

  // Wakes nobody for a single part.
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override;

 private:
  struct Task;

  void Serve();
  void WorkOn(Task& task) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar work_;                         // there is a task, or the end
  absl::CondVar done_;                         // somebody stopped working on a task
  Task* task_ ABSL_GUARDED_BY(mu_) = nullptr;  // the one that parts are taken of
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_THREAD_POOL_H_
