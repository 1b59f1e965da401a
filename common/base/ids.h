// Strong types for numbers that could be mixed up.

#ifndef SLUICE_COMMON_BASE_IDS_H_
#define SLUICE_COMMON_BASE_IDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace sluice {

// A number of one kind (`Tag`), which compares only with numbers of the same kind.
template <typename Tag>
class Number {
 public:
  constexpr Number() = default;
  constexpr explicit Number(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr Number Next() const { return Number(value_ + 1); }

  friend constexpr bool operator==(Number a, Number b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Number a, Number b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Number a, Number b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(Number a, Number b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(Number a, Number b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(Number a, Number b) { return a.value_ >= b.value_; }

  friend std::ostream& operator<<(std::ostream& out, Number n) { return out << n.value_; }
  template <typename H>
  friend H AbslHashValue(H h, Number n) {
    return H::combine(std::move(h), n.value_);
  }

 private:
  uint64_t value_ = 0;
};

using Step = Number<struct StepTag>;                // version of the parameters
using Incarnation = Number<struct IncarnationTag>;  // counts the starts of a job's server, from 1
using SessionId = Number<struct SessionTag>;        // counts the calls of Join, from 1
using Sequence = Number<struct SequenceTag>;        // number of a worker's push, from 1
using ProcessNonce = Number<struct NonceTag>;       // drawn by each worker process, never 0

// A worker's place in the order of ranks. Workers with the same index are ordered by name.
using Rank = std::pair<uint32_t, std::string>;

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_IDS_H_
