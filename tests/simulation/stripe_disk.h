// The disk of one server of several, with its stripe's files of checkpoints. It survives the
// server's process.

#ifndef SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_
#define SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/holder/stripe_storage.h"

namespace sluice {

// Has the rules of StripeStore (server/durable/checkpoint/stripe_store.h), and no files.
class StripeDisk final : public StripeStorage {
 public:
  struct File {
    StripeCheckpoint stripe;
    uint64_t checksum = 0;
  };

  explicit StripeDisk(uint32_t server) : server_(server) {}

  absl::StatusOr<uint64_t> Save(const TakeCheckpoint& checkpoint, const Layout& whole,
                                const StripeCheckpoint& stripe) override;
  absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& checkpoint,
                                        const Layout& whole) override;
  // The jobs have no journal.
  absl::StatusOr<Step> OpenJournal(const LoadCheckpoint& checkpoint,
                                   const Layout& /*whole*/) override {
    return checkpoint.source.step;
  }
  absl::StatusOr<JournaledSum> NextJournaled() override {
    return absl::DataLossError("there is no journal");
  }
  std::unique_ptr<StepJournal> StartJournal(
      Incarnation /*incarnation*/,
      std::function<void(const JournalReport&)> /*listener*/) override {
    return nullptr;
  }
  void Keep(const KeepCheckpoints& checkpoints) override;

  // The file of that checkpoint, or null.
  const File* Find(const CheckpointKey& checkpoint) const;
  // How many checkpoints the incarnation has saved here.
  uint64_t SavedBy(Incarnation incarnation) const;
  // Whether it has no file that Keep() removes.
  bool HasOnly(const std::vector<CheckpointKey>& keep) const;

 private:
  using Name = std::pair<uint64_t, uint64_t>;  // incarnation, step

  static Name NameOf(const CheckpointKey& key) {
    return {key.incarnation.value(), key.step.value()};
  }
  static bool IsKept(const Name& name, const std::vector<CheckpointKey>& keep);

  const uint32_t server_;
  std::map<Name, File> files_;
  std::map<uint64_t, uint64_t> saved_;  // by incarnation
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_
