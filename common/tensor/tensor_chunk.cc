#include "common/tensor/tensor_chunk.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status TakeStripe(const Layout& layout, TensorChunk& chunk) {
  const Stripe* const stripe = layout.stripe();
  if (stripe == nullptr || !chunk.encoded.has_value() || !chunk.encoded->of_vector) {
    return absl::OkStatus();
  }
  const uint64_t size = stripe->all.size();
  const uint64_t begin = chunk.encoded->offset;
  const uint64_t count = chunk.encoded->how.count;
  if (begin > size || count > size - begin) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("chunk of ", count, " elements at offset ", begin,
                                  " of the whole vector lies outside it; it has ", size));
  }
  chunk.stripe = *stripe;
  chunk.offset = stripe->all.Before(stripe->index, begin);
  if (chunk.size() > 0) return absl::OkStatus();
  return MakeError(Reason::kBadChunk,
                   absl::StrCat("chunk of ", count, " elements at offset ", begin,
                                " of the whole vector has none that this server holds; send it to "
                                "those that do"));
}

}  // namespace sluice
