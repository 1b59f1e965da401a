// A replica's part of checkpoints, and its journal, in memory, in place of a directory.

#ifndef SLUICE_TESTS_TESTING_REPLICA_STRIPES_IN_MEMORY_H_
#define SLUICE_TESTS_TESTING_REPLICA_STRIPES_IN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "server/replica/stripe_storage.h"
#include "tests/testing/rows_of_snapshot.h"

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

  absl::StatusOr<Step> OpenJournal(const LoadCheckpoint& checkpoint,
                                   const Layout& /*whole*/) override {
    next_ = 0;
    while (next_ < journal.size() && journal[next_].step <= checkpoint.source.step) ++next_;
    return next_ < journal.size() ? journal.back().step : checkpoint.source.step;
  }
  absl::StatusOr<JournaledSum> NextJournaled() override {
    if (next_ == journal.size()) return absl::DataLossError("the journal ends");
    const JournaledSum& step = journal[next_++];
    JournaledSum copy = {step.step, step.incarnation, step.checksum, FloatBuffer(step.sum.size()),
                         step.rows};
    CopyTo(AsPiece(step.sum.span()), copy.sum.span());
    return copy;
  }
  std::unique_ptr<StepJournal> StartJournal(
      Incarnation /*incarnation*/, std::function<void(const JournalReport&)> listener) override {
    return std::make_unique<InMemory>(*this, std::move(listener));
  }

  void Keep(const KeepCheckpoints& checkpoints) override { keep = checkpoints.keep; }

  static StripeCheckpoint Copy(const StripeCheckpoint& stripe) {
    StripeCheckpoint copy;
    copy.parameters = stripe.parameters;
    copy.optimizer_steps = stripe.optimizer_steps;
    copy.row_slots = stripe.row_slots;
    copy.row_steps = stripe.row_steps;
    copy.rows = RowsOf(*stripe.parameters, stripe.row_slots.size());
    for (const SlotCheckpoint& slot : stripe.slots) {
      copy.slots.push_back({slot.name, FloatBuffer(slot.values.size())});
      CopyTo(AsPiece(slot.values.span()), copy.slots.back().values.span());
    }
    return copy;
  }

  absl::Status fails;  // of Save()
  std::map<Key, StripeCheckpoint> saved;
  std::vector<CheckpointKey> keep;
  std::vector<JournaledSum> journal;  // of all incarnations
  int segments = 0;                   // that were begun after a checkpoint

 private:
  // What is appended is durable at once.
  class InMemory final : public StepJournal {
   public:
    InMemory(StripesInMemory& stripes, std::function<void(const JournalReport&)> listener)
        : stripes_(stripes), listener_(std::move(listener)) {}

    void Append(const StepRecord& record, absl::Span<const float> sum,
                absl::Span<const TableSums> rows) override {
      JournaledSum step = {record.step,
                           record.incarnation,
                           record.checksum,
                           FloatBuffer(sum.size()),
                           {rows.begin(), rows.end()}};
      CopyTo(AsPiece(sum), step.sum.span());
      stripes_.journal.push_back(std::move(step));
      listener_({record.step, absl::OkStatus()});
    }
    void BeginSegment() override { ++stripes_.segments; }

   private:
    StripesInMemory& stripes_;
    const std::function<void(const JournalReport&)> listener_;
  };

  size_t next_ = 0;  // step of the journal to read
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_REPLICA_STRIPES_IN_MEMORY_H_
