// Work that falls into independent parts, done by however many threads there are.

#ifndef SLUICE_COMMON_PARALLEL_H_
#define SLUICE_COMMON_PARALLEL_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace sluice {

// May be called by any thread; whoever finds the others busy works alone.
class Parallel {
 public:
  virtual ~Parallel() = default;

  // Calls part(0) … part(count − 1), each once, in any order and perhaps at once, and returns when
  // all have returned. The calling thread takes its share.
  virtual void For(size_t count, absl::FunctionRef<void(size_t)> part) = 0;
};

// The calling thread alone, in order.
class Serial final : public Parallel {
 public:
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override {
    for (size_t i = 0; i < count; ++i) part(i);
  }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_PARALLEL_H_
