// The directory in which a server that is not the first one saves its stripe.

#ifndef SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "server/holder/stripe_storage.h"

namespace sluice {

// It takes no lock: the names of files have the incarnation, which the first server has locked.
class StripeDirectory final : public StripeStorage {
 public:
  // Creates the directory if necessary. UNAVAILABLE if it cannot. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<StripeDirectory>> Open(FileSystem& files,
                                                               const std::string& directory,
                                                               StripePlace place);

  absl::StatusOr<uint64_t> Save(const TakeCheckpoint& checkpoint, const Layout& whole,
                                const StripeCheckpoint& stripe) override;
  absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& checkpoint,
                                        const Layout& whole) override;
  void Keep(const KeepCheckpoints& checkpoints) override;

 private:
  explicit StripeDirectory(StripeStore store) : store_(std::move(store)) {}

  StripeStore store_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_STRIPE_DIRECTORY_H_
