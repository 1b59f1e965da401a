// Floats together with the owner of their memory. gRPC may continue to read what it was given to
// send after a call has failed or was answered early, so it holds the owner as long as it reads.

#ifndef SLUICE_COMMON_TENSOR_SHARED_FLOATS_H_
#define SLUICE_COMMON_TENSOR_SHARED_FLOATS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// Copies share the memory. The memory may be written again once the call that sends it has
// returned: the server ignores what is sent after that.
struct SharedFloats {
  absl::Span<const float> values;
  std::shared_ptr<const void> owner;  // owns their memory

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
