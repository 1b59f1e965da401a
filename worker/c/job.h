// The types behind the opaque ones of sluice.h, and how errors cross it.

#ifndef SLUICE_WORKER_C_JOB_H_
#define SLUICE_WORKER_C_JOB_H_

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"
#include "worker/c/sluice.h"
#include "worker/job.h"

struct sluice_job {
  explicit sluice_job(sluice::Job started) : job(std::move(started)) {}

  sluice::Job job;
};

struct sluice_gathered {
  std::vector<std::string> data;  // of each rank
};

struct sluice_buffer {
  absl::Span<float> floats;
  std::shared_ptr<const void> owner;                   // of the floats
  std::shared_ptr<const sluice::SharedMemory> shared;  // null if the system has no shared memory
};

namespace sluice {

// Keeps the error for sluice_error_message(), and returns its code.
sluice_code CodeOf(const absl::Status& status);

// CodeOf() of a function's status; RESOURCE_EXHAUSTED if its memory cannot be had: no exception may
// leave a function of sluice.h.
template <typename Function>
sluice_code Guarded(Function function) {
  try {
    return CodeOf(function());
  } catch (const std::bad_alloc&) {
    return CodeOf(absl::ResourceExhaustedError("there is not so much memory"));
  } catch (const std::length_error&) {
    return CodeOf(absl::ResourceExhaustedError("no memory is so large"));
  }
}

}  // namespace sluice

#endif  // SLUICE_WORKER_C_JOB_H_
