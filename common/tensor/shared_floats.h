// Floats that may still be read when whoever handed them out is done: a network library goes on
// sending what was given to it after a call has failed, or was answered early.

#ifndef SLUICE_COMMON_TENSOR_SHARED_FLOATS_H_
#define SLUICE_COMMON_TENSOR_SHARED_FLOATS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// Copies share the memory. It may be written again once the call that sends it has returned: what
// is then still sent is read by nobody.
struct SharedFloats {
  absl::Span<const float> values;
  std::shared_ptr<const void> owner;  // of their memory

  SharedFloats Part(size_t offset, size_t count) const {
    return {values.subspan(offset, count), owner};
  }
};

inline SharedFloats Share(std::vector<float> values) {
  const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  return {*owner, owner};
}

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_SHARED_FLOATS_H_
