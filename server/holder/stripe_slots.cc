#include "server/holder/stripe_slots.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

void Copy(absl::Span<const float> from, absl::Span<float> to, Parallel& parallel) {
  ForParts(parallel, from.size(), [&](size_t, uint64_t begin, uint64_t end) {
    CopyTo(AsPiece(from.subspan(begin, end - begin)), to.subspan(begin, end - begin));
  });
}

}  // namespace

std::vector<SlotCheckpoint> CopySlots(StripeExecutor& stripe, Parallel& parallel) {
  std::vector<SlotCheckpoint> copies;
  for (const OptimizerSlot& slot : stripe.slots()) {
    copies.push_back({slot.name, FloatBuffer(slot.values.size())});
    Copy(slot.values, copies.back().values.span(), parallel);
  }
  return copies;
}

absl::Status RestoreSlots(const std::vector<SlotCheckpoint>& slots, StripeExecutor& stripe,
                          Parallel& parallel) {
  const std::vector<OptimizerSlot> own = stripe.slots();
  // A stripe without elements has no slots, and the file has them, empty.
  const bool none = own.empty() && std::all_of(slots.begin(), slots.end(), [](const auto& slot) {
                      return slot.values.size() == 0;
                    });
  const bool same = none || std::equal(own.begin(), own.end(), slots.begin(), slots.end(),
                                       [](const OptimizerSlot& a, const SlotCheckpoint& b) {
                                         return a.name == b.name;
                                       });
  if (!same) {
    return absl::DataLossError(absl::StrCat("the checkpoint has ", slots.size(),
                                            " optimizer slots; expected the ", own.size(),
                                            " slots of its optimizer, by name"));
  }
  for (size_t i = 0; i < own.size(); ++i) Copy(slots[i].values.span(), own[i].values, parallel);
  return absl::OkStatus();
}

}  // namespace sluice
