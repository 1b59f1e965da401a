#include "server/durable/stripe_directory.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "server/durable/make_directory.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<StripeDirectory>> StripeDirectory::Open(FileSystem& files,
                                                                       const std::string& directory,
                                                                       StripePlace place) {
  const absl::Status made = MakeDirectory(directory);
  if (!made.ok()) return made;
  return absl::WrapUnique(new StripeDirectory(StripeStore(files, directory, place)));
}

absl::StatusOr<uint64_t> StripeDirectory::Save(const TakeCheckpoint& checkpoint,
                                               const Layout& whole,
                                               const StripeCheckpoint& stripe) {
  auto saved =
      store_.Save(checkpoint.job_id, {checkpoint.incarnation, checkpoint.step}, whole, stripe);
  if (saved.ok()) {
    LOG(INFO) << "saved this server's part of the checkpoint of step " << checkpoint.step;
  } else {
    LOG(ERROR) << "cannot save this server's part of the checkpoint of step " << checkpoint.step
               << ": " << saved.status().message();
  }
  return saved;
}

absl::StatusOr<StripeCheckpoint> StripeDirectory::Load(const CheckpointSource& checkpoint,
                                                       const Layout& whole) {
  auto loaded = store_.Load(checkpoint, whole);
  LOG_IF(INFO, loaded.ok()) << "loaded this server's part of the checkpoint of step "
                            << checkpoint.step;
  LOG_IF(ERROR, !loaded.ok()) << loaded.status().message();
  return loaded;
}

void StripeDirectory::Keep(const KeepCheckpoints& checkpoints) {
  std::vector<CheckpointName> keep;
  for (const CheckpointKey& key : checkpoints.keep) keep.push_back({key.incarnation, key.step});
  store_.RemoveOthers(keep);
}

}  // namespace sluice
