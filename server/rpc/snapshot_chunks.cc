#include "server/rpc/snapshot_chunks.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/parallel.h"
#include "common/tensor/shared_floats.h"
#include "server/rpc/lane_table.h"

namespace sluice {
namespace {

ChunkMessages Encode(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums) {
  ChunkMessages chunks;
  ForEachChunk(0, {snapshot->values.span(), snapshot}, checksums,
               [&](const grpc::ByteBuffer& chunk, uint64_t elements) {
                 chunks.Add(chunk, ValueTransform::kFloat32, elements);
                 return true;
               });
  return chunks;
}

ChunkMessages MessagesOf(const std::vector<SnapshotPart>& parts) {
  ChunkMessages chunks;
  for (const SnapshotPart& part : parts) {
    if (part.encoded.has_value()) {
      const ChunkEncoding& how = part.encoded->how;
      chunks.Add(EncodeChunk(*part.encoded), how.transform, how.count);
      continue;
    }
    ForEachChunk(part.offset, part.floats, Checksums::kOn,
                 [&](const grpc::ByteBuffer& chunk, uint64_t elements) {
                   chunks.Add(chunk, ValueTransform::kFloat32, elements);
                   return true;
                 });
  }
  return chunks;
}

}  // namespace

absl::Status CheckCanBePulled(const Encoding& encoding) {
  if (!encoding.sparse()) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("parameters cannot be pulled as ", EncodingName(encoding),
                                ", since those that are not sent would be 0; ask for float16, "
                                "bfloat16, int8, or float32 with a compressor"));
}

grpc::ByteBuffer EncodePart(const std::shared_ptr<const Snapshot>& snapshot, uint64_t offset,
                            uint64_t end, Checksums checksums) {
  const auto values = snapshot->values.span().subspan(offset, end - offset);
  return EncodeChunk(offset, Share({values.begin(), values.end()}), checksums);
}

grpc::ByteBuffer SnapshotChunks::Copy(const std::shared_ptr<const Snapshot>& snapshot,
                                      Checksums checksums) {
  absl::MutexLock lock(&mu_);
  Copied& copied = copied_[checksums == Checksums::kOn ? 1 : 0];
  if (copied.snapshot.lock() != snapshot) {
    copied.message = EncodePart(snapshot, 0, snapshot->values.size(), checksums);
    copied.snapshot = snapshot;
  }
  return copied.message;
}

// Without checksums the messages only refer to the snapshot, so they are made at once.
void SnapshotChunks::Get(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums,
                         Ready ready) {
  auto chunks = checksums == Checksums::kOff ? FindOrMakePlain(snapshot, checksums)
                                             : FindPlain(*snapshot, checksums);
  if (chunks != nullptr) return ready(std::move(chunks));
  RunIfLarge(*snapshot, [this, snapshot, checksums, ready = std::move(ready)] {
    ready(FindOrMakePlain(snapshot, checksums));
  });
}

SnapshotChunks::Chunks SnapshotChunks::FindPlain(const Snapshot& snapshot, Checksums checksums) {
  absl::MutexLock lock(&mu_);
  const Plain& plain = plain_[checksums == Checksums::kOn ? 1 : 0];
  Chunks chunks = plain.chunks.lock();
  // The chunks own their snapshot, so its memory has not been used for another snapshot.
  return chunks != nullptr && plain.snapshot.lock().get() == &snapshot ? chunks : nullptr;
}

SnapshotChunks::Chunks SnapshotChunks::FindOrMakePlain(
    const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums) {
  Plain& plain = plain_[checksums == Checksums::kOn ? 1 : 0];
  // Other pulls of the snapshot wait here, and then find the chunks.
  absl::MutexLock encode_lock(&plain.encode_mu);
  Chunks chunks = FindPlain(*snapshot, checksums);
  if (chunks != nullptr) return chunks;
  const SpanTimer timer(store_.on_span(), RealClock(), ServerSpan::kEncode);
  chunks = std::make_shared<const ChunkMessages>(Encode(snapshot, checksums));
  absl::MutexLock lock(&mu_);
  plain.snapshot = snapshot;
  plain.chunks = chunks;
  return chunks;
}

void SnapshotChunks::Get(const std::shared_ptr<const Snapshot>& snapshot, const Encoding& encoding,
                         SessionId session, Ready ready) {
  auto used = Use(encoding, session);
  if (!used.ok()) return ready(used.status());
  Chunks found = FindEncoded(**used, snapshot->step);
  if (found != nullptr) return ready(std::move(found));
  RunIfLarge(*snapshot, [this, snapshot, state = *std::move(used), ready = std::move(ready)] {
    ready(FindOrEncode(*state, *snapshot));
  });
}

// Returns null if the step must be encoded.
SnapshotChunks::Chunks SnapshotChunks::FindEncoded(const InEncoding& state, Step step) {
  absl::MutexLock lock(&mu_);
  const auto found = state.of_step.find(step);
  return found == state.of_step.end() ? nullptr : found->second.lock();
}

// Each step that is encoded takes over the rounding errors of the one before it, in whatever order
// pulls come here.
SnapshotChunks::Chunks SnapshotChunks::FindOrEncode(InEncoding& state, const Snapshot& snapshot) {
  // Other pulls with this encoding wait here, and then find their step if it is the same.
  absl::MutexLock encode_lock(&state.encode_mu);
  Chunks encoded = FindEncoded(state, snapshot.step);
  if (encoded != nullptr) return encoded;
  const SpanTimer timer(store_.on_span(), RealClock(), ServerSpan::kEncode);
  const auto parts = state.encoder.Encode(snapshot, store_.parallel());
  encoded = std::make_shared<const ChunkMessages>(MessagesOf(parts));
  KeepEncoded(state, snapshot.step, encoded);
  return encoded;
}

void SnapshotChunks::KeepEncoded(InEncoding& state, Step step, Chunks chunks) {
  Chunks replaced;  // freed after the lock is released
  absl::MutexLock lock(&mu_);
  auto& of_step = state.of_step;
  for (auto it = of_step.begin(); it != of_step.end();) {
    it = it->second.expired() ? of_step.erase(it) : std::next(it);
  }
  of_step[step] = chunks;
  if (of_step.rbegin()->first == step) replaced = std::exchange(state.latest, std::move(chunks));
}

void SnapshotChunks::RunIfLarge(const Snapshot& snapshot, std::function<void()> task) {
  if (snapshot.values.size() <= kPartElements) return task();
  store_.executors().encodings->Run(std::move(task));
}

// Its memory may be as large as the model.
void SnapshotChunks::Free(EncodingPtr unused) {
  if (unused != nullptr) store_.executors().encodings->Run([unused = std::move(unused)] {});
}

void SnapshotChunks::Begin(SessionId session) {
  absl::MutexLock lock(&mu_);
  uses_[session];
}

void SnapshotChunks::End(SessionId session) {
  EncodingPtr unused;
  {
    absl::MutexLock lock(&mu_);
    const auto found = uses_.find(session);
    if (found == uses_.end()) return;
    unused = StopUsing(found->second);
    uses_.erase(found);
  }
  Free(std::move(unused));
}

absl::StatusOr<SnapshotChunks::EncodingPtr> SnapshotChunks::Use(const Encoding& encoding,
                                                                SessionId session) {
  const absl::Status can = CheckCanBePulled(encoding);
  if (!can.ok()) return can;
  const std::string name = EncodingName(encoding);
  EncodingPtr unused, made;
  {
    absl::MutexLock lock(&mu_);
    const auto user = uses_.find(session);
    if (user == uses_.end()) return NoSessionOfLane(session);
    if (user->second == name) return encodings_.at(name);
    unused = StopUsing(user->second);
    made = FindOrMake(name, encoding);
    if (made != nullptr) {
      ++made->users;
      user->second = name;
    }
  }
  Free(std::move(unused));
  if (made != nullptr) return made;
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("sessions pull parameters in ", kMostEncodings,
                                " encodings already; ask for one of those, not for ", name));
}

// Returns null if too many encodings are in use.
SnapshotChunks::EncodingPtr SnapshotChunks::FindOrMake(const std::string& name,
                                                       const Encoding& encoding) {
  const auto found = encodings_.find(name);
  if (found != encodings_.end()) return found->second;
  if (encodings_.size() == kMostEncodings) return nullptr;
  auto made = std::make_shared<InEncoding>(*store_.stripe().layout(), encoding, transforms_);
  return encodings_.emplace(name, std::move(made)).first->second;
}

// Clears the name of the encoding that a session uses. Returns the encoding if it was the last to
// use it.
SnapshotChunks::EncodingPtr SnapshotChunks::StopUsing(std::string& name) {
  const auto found = encodings_.find(name);
  name.clear();
  if (found == encodings_.end() || --found->second->users > 0) return nullptr;
  EncodingPtr unused = std::move(found->second);
  encodings_.erase(found);
  return unused;
}

}  // namespace sluice
