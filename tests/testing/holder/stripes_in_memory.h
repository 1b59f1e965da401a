// A holder's part of checkpoints in memory, in place of a directory.

#ifndef SLUICE_TESTS_TESTING_HOLDER_STRIPES_IN_MEMORY_H_
#define SLUICE_TESTS_TESTING_HOLDER_STRIPES_IN_MEMORY_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "server/holder/stripe_storage.h"

namespace sluice {

class StripesInMemory final : public StripeStorage {
 public:
  using Key = std::pair<Incarnation, Step>;

  absl::StatusOr<uint64_t> Save(const TakeCheckpoint& checkpoint, const Layout& /*whole*/,
                                const StripeCheckpoint& stripe) override {
    if (!fails.ok()) return fails;
    saved[{checkpoint.incarnation, checkpoint.step}] = Copy(stripe);
    return checkpoint.step.value() + 1000;
  }

  absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& checkpoint,
                                        const Layout& /*whole*/) override {
    const auto found = saved.find({checkpoint.incarnation, checkpoint.step});
    if (found == saved.end()) return absl::DataLossError("the stripe is not there");
    return Copy(found->second);
  }

  void Keep(const KeepCheckpoints& checkpoints) override { keep = checkpoints.keep; }

  static StripeCheckpoint Copy(const StripeCheckpoint& stripe) {
    StripeCheckpoint copy;
    copy.parameters = stripe.parameters;
    copy.optimizer_steps = stripe.optimizer_steps;
    for (const SlotCheckpoint& slot : stripe.slots) {
      copy.slots.push_back({slot.name, FloatBuffer(slot.values.size())});
      CopyTo(AsPiece(slot.values.span()), copy.slots.back().values.span());
    }
    return copy;
  }

  absl::Status fails;  // of Save()
  std::map<Key, StripeCheckpoint> saved;
  std::vector<CheckpointKey> keep;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_HOLDER_STRIPES_IN_MEMORY_H_
