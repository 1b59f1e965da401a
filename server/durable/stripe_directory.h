// The directory in which a replica saves its stripe, and its journal; directory.h lists the files.

#ifndef SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/storage/file_lock.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "server/durable/durable_options.h"
#include "server/durable/journal/journal_replay.h"
#include "server/replica/stripe_storage.h"
#include "server/state/found_files.h"

namespace sluice {

// It locks the directory against other servers with its index. Servers of one job may share a
// directory. File names contain the incarnation, and the leader gives each number to one
// incarnation.
class StripeDirectory final : public StripeStorage {
 public:
  // Locks the directory, creates it if necessary, and finds its files. It changes no file.
  // FAILED_PRECONDITION names the server that holds the directory. UNAVAILABLE if the directory
  // cannot be made or read. `files` outlives this object.
  static absl::StatusOr<std::unique_ptr<StripeDirectory>> Open(FileSystem& files,
                                                               const std::string& directory,
                                                               StripePlace place,
                                                               Durability durability);

  const FoundFiles& found() const { return found_; }
  // This server follows that job. The file of the lock names it from now on.
  void NoteJob(const std::string& job_id);

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
  std::unique_ptr<FileLock> lock_;
  FoundFiles found_;
  StripeStore store_;
  std::unique_ptr<JournalCursor> journaled_;  // null before OpenJournal()
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
