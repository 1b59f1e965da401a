// The disk of one server, with its stripe's files of checkpoints and its journal. It survives the
// server's process.

#ifndef SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_
#define SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/replica/stripe_storage.h"
#include "tests/simulation/disk_journal.h"

namespace sluice {

// Has the rules of StripeDirectory (server/durable/stripe_directory.h), and no files.
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
  absl::StatusOr<Step> OpenJournal(const LoadCheckpoint& checkpoint, const Layout& whole) override;
  absl::StatusOr<JournaledSum> NextJournaled() override;
  std::unique_ptr<StepJournal> StartJournal(
      Incarnation /*incarnation*/, std::function<void(const JournalReport&)> listener) override {
    return journal_.Start(std::move(listener));
  }
  void Keep(const KeepCheckpoints& checkpoints) override;

  DiskJournal& journal() { return journal_; }
  const DiskJournal& journal() const { return journal_; }
  // The next step of the journal that was opened, or null.
  const DiskJournal::Record* NextRecord();

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
  DiskJournal journal_;
  std::deque<const DiskJournal::Record*> repeats_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_STRIPE_DISK_H_
