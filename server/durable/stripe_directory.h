// The directory in which a server that is not the first one saves its stripe, and its journal.

#ifndef SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "server/durable/durable_options.h"
#include "server/durable/journal/journal_replay.h"
#include "server/holder/stripe_storage.h"

namespace sluice {

// It takes no lock. File names contain the incarnation, and the first server, which locks its own
// directory, gives each number to one incarnation.
class StripeDirectory final : public StripeStorage {
 public:
  // Creates the directory if necessary. UNAVAILABLE if it cannot. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<StripeDirectory>> Open(FileSystem& files,
                                                               const std::string& directory,
                                                               StripePlace place,
                                                               Durability durability);

  absl::StatusOr<uint64_t> Save(const TakeCheckpoint& checkpoint, const Layout& whole,
                                const StripeCheckpoint& stripe) override;
  absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& checkpoint,
                                        const Layout& whole) override;
  absl::StatusOr<Step> OpenJournal(const LoadCheckpoint& checkpoint, const Layout& whole) override;
  absl::StatusOr<JournaledSum> NextJournaled() override;
  std::unique_ptr<StepJournal> StartJournal(
      Incarnation incarnation, std::function<void(const JournalReport&)> listener) override;
  void Keep(const KeepCheckpoints& checkpoints) override;

 private:
  StripeDirectory(FileSystem& files, const std::string& directory, StripePlace place,
                  Durability durability)
      : files_(files),
        directory_(directory),
        place_(place),
        durability_(durability),
        store_(files, directory, place) {}

  FileSystem& files_;
  const std::string directory_;
  const StripePlace place_;
  const Durability durability_;
  StripeStore store_;
  std::unique_ptr<JournalCursor> journaled_;  // null before OpenJournal()
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
