// What a worker and the server say to each other, as values. The wire's form of them is made in
// common/wire/messages.h; their rules are in proto/sluice/v1/parameter_server.proto.

#ifndef SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_
#define SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/attachment.h"
#include "common/protocol/consistency.h"
#include "common/protocol/encoding_report.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

// Elements in one chunk of a stream: 1 MiB of float32.
inline constexpr uint64_t kChunkElements = uint64_t{1} << 18;

enum class SessionRole { kWorker, kObserver };

struct JoinRequest {
  std::string job_id;  // empty: whichever job the server runs
  SessionRole role = SessionRole::kWorker;
  std::string worker;
  ProcessNonce process_nonce;
  std::string host;
  uint32_t pid = 0;
  std::string push_encoding;  // for people, as is the next
  std::string pull_encoding;
  Layout layout;
  OptimizerConfig optimizer;       // ignored for observers
  absl::optional<uint32_t> index;  // place among the workers, if the launcher gave one
  // Where the worker's gradients lie, if servers of its node may read them there.
  std::shared_ptr<const SharedMemory> memory;
};

struct Welcome {
  SessionId session;
  std::string job_id;
  Incarnation incarnation;
  Step step;  // the first this worker takes part in
  bool initialized = false;
  // Whether the server knows this process from before. If it does not, nobody knows whether a push
  // of its earlier session counted, and the push must not be repeated.
  bool resumed = false;
  Sequence last_sequence;
  absl::Duration lease;  // a session is evicted after this long without a call
  Consistency consistency;
  uint32_t index = 0;    // place among the workers
  uint32_t workers = 1;  // the job was launched with
  // Of earlier processes of this worker that did not leave: so many batches of its part of the data
  // are done.
  uint64_t pushes_before = 0;
  uint64_t lost_steps = 0;  // that an earlier life of the server had made
};

struct PushHeader {
  SessionId session;
  Sequence sequence;
  Step step;  // whose parameters the gradient was computed on
  Incarnation incarnation;
  uint32_t samples = 1;
  absl::optional<float> loss;
  absl::optional<EncodingReport> encodings;        // if there is anything new
  std::shared_ptr<const Attachments> attachments;  // null if there are none
};

// What the sender of a push that began early learns only at its end: it counts in place of what the
// header said.
struct PushSummary {
  uint32_t samples = 1;
  absl::optional<float> loss;
};

enum class Disposition {
  kAccepted,
  kApplied,
  kStaleDropped,
  kDuplicate,
  kSkipped,  // it was not finite, and the server skips such gradients
};

struct PushOutcome {
  Disposition disposition = Disposition::kAccepted;
  Step step;
  Incarnation incarnation;
  uint64_t staleness = 0;
  absl::optional<Disposition> first_disposition;  // of a duplicate
};

struct InitializeOutcome {
  bool accepted = false;
  Step step;
};

struct PullRequest {
  SessionId session;
  Step min_step;
  absl::optional<Step> have_step;
  // Of the push whose worker asks for the parameters to go on with: waits until that push is
  // answered and the job's mode lets the worker go on.
  absl::optional<Sequence> after;
  bool whole = false;  // all of one step, also where reads are inconsistent
};

struct PullHeader {
  Step step;
  Incarnation incarnation;
  bool not_modified = false;
  // Whether chunks may be of later steps (AsySG-InCon).
  bool inconsistent = false;
  double learning_rate = 0;  // of that step; 0 if workers have their own
  bool last = false;         // no step will follow; told to observers
};

// Results a worker reports when it leaves, by name.
using Results = std::map<std::string, double>;

// What happens to a job after a session was welcomed.
struct JobEvent {
  enum class Kind {
    kTrainingFinished,  // the last worker has left; `step` is final
    kDraining,          // the server is going down
    kEvicted,           // this session has ended: replaced, silent, too slow, or by the operator
    kPolicyChanged,     // from `step` on
    kDeserted,  // training has finished and the last observer has left; told to the server alone
  };
  Kind kind = Kind::kTrainingFinished;
  Step step;
  Consistency consistency;  // kPolicyChanged: the new one
};

// "accepted", "applied", "stale", "duplicate", "skipped".
absl::string_view DispositionName(Disposition disposition);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_
