// A snapshot as the messages that a pull is answered with: made once, sent to every worker.

#ifndef SLUICE_SERVER_GRPC_SNAPSHOT_CHUNKS_H_
#define SLUICE_SERVER_GRPC_SNAPSHOT_CHUNKS_H_

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/snapshot_store.h"

namespace sluice {

// PullParamsResponses that hold a chunk each and refer to the snapshot's memory, which they share.
using EncodedChunks = std::vector<grpc::ByteBuffer>;

// May be used by any thread.
class SnapshotChunks {
 public:
  // Those of `snapshot`: the ones that are in use for it already, or new ones.
  std::shared_ptr<const EncodedChunks> Of(const std::shared_ptr<const Snapshot>& snapshot);

 private:
  absl::Mutex mu_;
  std::weak_ptr<const Snapshot> encoded_ ABSL_GUARDED_BY(mu_);
  std::weak_ptr<const EncodedChunks> chunks_ ABSL_GUARDED_BY(mu_);  // of encoded_
};

// The message for elements [offset, end) of `snapshot`.
grpc::ByteBuffer EncodePart(const std::shared_ptr<const Snapshot>& snapshot, uint64_t offset,
                            uint64_t end);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_SNAPSHOT_CHUNKS_H_
