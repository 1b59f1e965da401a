#include "server/durable/format/directory_sync.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status DirectorySync::Sync() {
  if (!error_.ok()) return error_;
  const absl::Status synced = files_.SyncDirectory(directory_);
  if (synced.ok()) return synced;
  error_ = absl::Status(synced.code(),
                        absl::StrCat(synced.message(),
                                     "; nobody knows which names are on the disk, so this server "
                                     "saves no more checkpoints there until it is started again"));
  return error_;
}

}  // namespace sluice
