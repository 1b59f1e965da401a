// The messages that answer pulls. They are made once for each snapshot and encoding, and all pulls
// of the snapshot share them. A pull gets the chunks of its own snapshot, never of a later one.
// With several servers, all of them then send the step that the pull's header names.
//
// An encoding that some session uses takes up to twice the model's memory: for the encoded
// parameters and for the error feedback. Long work runs on Executors::encodings.

#ifndef SLUICE_SERVER_RPC_SNAPSHOT_CHUNKS_H_
#define SLUICE_SERVER_RPC_SNAPSHOT_CHUNKS_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform_registry.h"
#include "common/wire/chunk.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"
#include "server/snapshots/snapshot_encoder.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

// Encoded PullParamsResponses, one chunk each, in order of their offsets.
struct ChunkMessages {
  void Add(const grpc::ByteBuffer& message, ValueTransform transform, uint64_t elements) {
    ChunkBytes& of_transform = bytes[static_cast<size_t>(transform)];
    of_transform.tensor += elements * sizeof(float);
    of_transform.wire += message.Length();
    all.push_back(message);
  }

  std::vector<grpc::ByteBuffer> all;
  BytesByTransform bytes{};
};

// The chunks of one pull, shared by its own call and its lanes. May be used by any thread.
class SharedChunks {
 public:
  // `permit` is the pull's.
  SharedChunks(std::shared_ptr<const ChunkMessages> chunks, std::shared_ptr<PullPermit> permit)
      : permit_(std::move(permit)), chunks_(std::move(chunks)) {}

  // The next chunk that no call has taken yet; null if none is left. Valid as long as this object.
  const grpc::ByteBuffer* Take() {
    const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < chunks_->all.size() ? &chunks_->all[index] : nullptr;
  }

  PullPermit& permit() { return *permit_; }

 private:
  const std::shared_ptr<PullPermit> permit_;  // destroyed after the chunks
  const std::shared_ptr<const ChunkMessages> chunks_;
  std::atomic<size_t> next_{0};
};

// The chunks of the latest snapshots. May be used by any thread.
class SnapshotChunks {
 public:
  // `transforms` and `store` outlive it.
  SnapshotChunks(const TransformRegistry& transforms, ParameterStore& store)
      : transforms_(transforms), store_(store) {}

  // The transforms that encodings may use.
  const TransformRegistry& transforms() const { return transforms_; }

  using Chunks = std::shared_ptr<const ChunkMessages>;
  // Called once: before the call returns, or by Executors::encodings.
  using Ready = std::function<void(absl::StatusOr<Chunks>)>;

  // The chunks of `snapshot` without encoding. While a pull uses them, other pulls share them. They
  // refer to the snapshot's memory and keep it alive.
  void Get(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums, Ready ready)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The chunks of `snapshot` in an encoding that is not plain. The chunks of the latest step are
  // kept. Those of other steps are kept while a pull uses them. BAD_ARGUMENT if the encoding is
  // sparse, or if kMostEncodings others are in use. UNKNOWN_SESSION if the session has ended.
  void Get(const std::shared_ptr<const Snapshot>& snapshot, const Encoding& encoding,
           SessionId session, Ready ready) ABSL_LOCKS_EXCLUDED(mu_);

  // The message with a copy of all elements of a small snapshot. It does not keep the snapshot in
  // memory. Those who ask for the same snapshot as the one before them share a copy.
  grpc::ByteBuffer Copy(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums)
      ABSL_LOCKS_EXCLUDED(mu_);

  // A session has begun or ended. A session uses the encoding that it asked for last. When no
  // session uses an encoding any more, the encoding is freed, with its error feedback.
  void Begin(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);
  void End(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

  // The most encodings that all sessions together may use at once.
  static constexpr size_t kMostEncodings = 4;

 private:
  struct Plain {
    absl::Mutex encode_mu;                      // held while the chunks are made
    std::weak_ptr<const Snapshot> snapshot;     // guarded by SnapshotChunks::mu_
    std::weak_ptr<const ChunkMessages> chunks;  // likewise
  };

  // The latest copy.
  struct Copied {
    std::weak_ptr<const Snapshot> snapshot;
    grpc::ByteBuffer message;
  };

  // The encoded snapshots, for one encoding.
  struct InEncoding {
    InEncoding(const Layout& layout, const Encoding& encoding, const TransformRegistry& transforms)
        : encoder(layout, encoding, transforms) {}

    int users = 0;  // sessions; guarded by SnapshotChunks::mu_
    std::map<Step, std::weak_ptr<const ChunkMessages>> of_step;  // likewise
    Chunks latest;                                               // likewise; null at first
    absl::Mutex encode_mu;
    SnapshotEncoder encoder ABSL_GUARDED_BY(encode_mu);
  };

  using EncodingPtr = std::shared_ptr<InEncoding>;

  absl::StatusOr<EncodingPtr> Use(const Encoding& encoding, SessionId session)
      ABSL_LOCKS_EXCLUDED(mu_);
  EncodingPtr FindOrMake(const std::string& name, const Encoding& encoding)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  EncodingPtr StopUsing(std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Free(EncodingPtr unused) ABSL_LOCKS_EXCLUDED(mu_);
  Chunks FindPlain(const Snapshot& snapshot, Checksums checksums) ABSL_LOCKS_EXCLUDED(mu_);
  Chunks FindOrMakePlain(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums)
      ABSL_LOCKS_EXCLUDED(mu_);
  Chunks FindEncoded(const InEncoding& state, Step step) ABSL_LOCKS_EXCLUDED(mu_);
  Chunks FindOrEncode(InEncoding& state, const Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mu_);
  void KeepEncoded(InEncoding& state, Step step, Chunks chunks) ABSL_LOCKS_EXCLUDED(mu_);
  void RunIfLarge(const Snapshot& snapshot, std::function<void()> task);

  const TransformRegistry& transforms_;
  ParameterStore& store_;
  absl::Mutex mu_;
  Plain plain_[2];                         // [0]: without checksums, [1]: with
  Copied copied_[2] ABSL_GUARDED_BY(mu_);  // likewise
  std::map<std::string, EncodingPtr> encodings_ ABSL_GUARDED_BY(mu_);  // by name
  // The name of the encoding that each open session uses; empty: it has asked for none yet.
  std::map<SessionId, std::string> uses_ ABSL_GUARDED_BY(mu_);
};

// BAD_ARGUMENT if the encoding is sparse.
absl::Status CheckCanBePulled(const Encoding& encoding);

// The message with a copy of elements [offset, end) of `snapshot`, not encoded. It does not keep
// the snapshot in memory.
grpc::ByteBuffer EncodePart(const std::shared_ptr<const Snapshot>& snapshot, uint64_t offset,
                            uint64_t end, Checksums checksums);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SNAPSHOT_CHUNKS_H_
