// A JoinRequest that is larger than one message: its parts for JoinInParts. A worker makes them,
// and the server puts them together again.

#ifndef SLUICE_COMMON_WIRE_JOIN_H_
#define SLUICE_COMMON_WIRE_JOIN_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

inline constexpr int kMaxMessage = 4 << 20;        // bytes of one message that the server takes
inline constexpr size_t kMaxJoinBytes = 64 << 20;  // bytes of all parts of one JoinRequest

// Cuts `request` into parts of about `part_bytes`, each of at most kMaxMessage. Any thread may call
// it.
std::vector<v1::JoinRequest> SplitJoin(v1::JoinRequest request, size_t part_bytes = 1 << 20);

// The parts of one request that have come. Externally synchronized. Its memory is bounded by
// kMaxJoinBytes and by the most tensors of a layout, whatever a peer sends.
class JoinParts {
 public:
  // Adds the next part, of `bytes` bytes. BAD_ARGUMENT, BAD_LAYOUT or BAD_OPTIMIZER if it breaks
  // the rules of JoinInParts; then the request is of no use.
  absl::Status Add(v1::JoinRequest part, size_t bytes);

  // Whether the last part has come.
  bool complete() const { return parts_ > 0 && !more_; }

  // The error of a request that ends here although it is not complete: BAD_ARGUMENT.
  absl::Status CheckComplete() const;

  size_t parts() const { return parts_; }
  size_t bytes() const { return bytes_; }

  // The whole request, once it is complete.
  v1::JoinRequest Take() { return std::move(whole_); }

 private:
  absl::Status CheckFollows(const v1::JoinRequest& part) const;
  absl::Status CheckSizes(const v1::JoinRequest& part, size_t bytes);
  absl::Status CheckRanges(const v1::Layout& added) const;
  absl::Status CheckGroups(const v1::OptimizerConfig& added);

  v1::JoinRequest whole_;
  size_t parts_ = 0;
  size_t bytes_ = 0;
  size_t grouped_ = 0;  // names in the optimizer's groups
  bool more_ = false;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_JOIN_H_
