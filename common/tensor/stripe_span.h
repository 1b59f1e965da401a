// Where the elements of one stripe lie in the memory of a vector, or of a part of it.

#ifndef SLUICE_COMMON_TENSOR_STRIPE_SPAN_H_
#define SLUICE_COMMON_TENSOR_STRIPE_SPAN_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/stripes.h"

namespace sluice {

// Does not own the memory. `T` is float or const float. Offsets and sizes count elements. Offsets
// count from the begin of the stripe.
template <typename T>
class StripeSpan {
 public:
  // A whole vector, as one stripe.
  StripeSpan(absl::Span<T> vector)  // NOLINT: a vector is the usual case
      : StripeSpan(Stripes(vector.size(), 1), 0, 0, vector) {}

  // The stripe's share of `values`, which are elements of the vector from element `first` on.
  StripeSpan(const Stripes& stripes, uint32_t stripe, uint64_t first, absl::Span<T> values)
      : stripes_(stripes), stripe_(stripe), first_(first), values_(values) {}

  // The elements that lie in the memory: [begin(), end()) of the stripe.
  uint64_t begin() const { return stripes_.Before(stripe_, first_); }
  uint64_t end() const { return stripes_.Before(stripe_, first_ + values_.size()); }
  uint64_t size() const { return end() - begin(); }
  uint64_t unit() const { return stripes_.unit(); }

  // [begin, end), if it is one piece of the memory.
  absl::optional<absl::Span<T>> OnePiece(uint64_t begin, uint64_t end) const {
    const uint64_t unit = stripes_.unit();
    if (begin == end) return absl::Span<T>();
    if (stripes_.count() > 1 && begin / unit != (end - 1) / unit) return absl::nullopt;
    return Piece(begin, end);
  }

  // Calls act(piece) for the pieces of the memory that [begin, end) consists of, in order.
  template <typename Act>
  void ForEachPiece(uint64_t begin, uint64_t end, const Act& act) const {
    if (stripes_.count() == 1) return act(Piece(begin, end));
    ForEachUnit(stripes_.unit(), begin, end,
                [&](uint64_t from, uint64_t to) { act(Piece(from, to)); });
  }

 private:
  // [begin, end) is one piece, and not empty.
  absl::Span<T> Piece(uint64_t begin, uint64_t end) const {
    return values_.subspan(stripes_.InVector(stripe_, begin) - first_, end - begin);
  }

  Stripes stripes_;
  uint32_t stripe_;
  uint64_t first_;
  absl::Span<T> values_;
};

// Copies [begin, end) of the stripe to `to`, which has that size.
inline void Gather(const StripeSpan<const float>& from, uint64_t begin, uint64_t end, float* to) {
  from.ForEachPiece(begin, end, [&to](absl::Span<const float> piece) {
    to = std::copy(piece.begin(), piece.end(), to);
  });
}

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_STRIPE_SPAN_H_
