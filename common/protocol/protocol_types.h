// The requests and answers between a worker and the server, as plain values.
//
// The core and the clients use them instead of protobuf's types. common/wire/messages.h translates
// them; proto/sluice/v1/parameter_server.proto has the rules of each call and field.

#ifndef SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_
#define SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/attachment.h"
#include "common/protocol/consistency.h"
#include "common/protocol/disposition.h"
#include "common/protocol/encoding_report.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/results.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

// Elements in one chunk of a stream: 1 MiB of float32.
inline constexpr uint64_t kChunkElements = uint64_t{1} << 18;

enum class SessionRole { kWorker, kObserver };

struct JoinRequest {
  std::string job_id;  // empty: any job
  SessionRole role = SessionRole::kWorker;
  std::string worker;
  ProcessNonce process_nonce;
  std::string host;
  uint32_t pid = 0;
  std::string push_encoding;  // shown to people
  std::string pull_encoding;  // shown to people
  std::string version;        // of Sluice, shown to people
  Layout layout;
  OptimizerConfig optimizer;       // ignored for observers
  absl::optional<uint32_t> index;  // place among the workers, if the launcher gave one
  // The memory of the worker's gradients, if a server on its node may read them there.
  std::shared_ptr<const SharedMemory> memory;
  // Its name, which is all that a server knows of it.
  absl::optional<SharedMemoryName> memory_name;
};

// The most pushes that are counted of a worker: one each millisecond for 34 years.
constexpr uint64_t kMostPushes = uint64_t{1} << 40;

struct Welcome {
  SessionId session;
  std::string job_id;
  Incarnation incarnation;
  Step step;                 // the first step that this worker takes part in
  bool initialized = false;  // the job has parameters
  // Whether the server knows this process from an earlier session. If it does not, nobody knows
  // whether a push of that session counted, and the push must not be repeated.
  bool resumed = false;
  Sequence last_sequence;  // of this process's pushes that the server knows
  absl::Duration lease;    // a session is evicted after this long without a call
  Consistency consistency;
  uint32_t index = 0;    // place among the workers
  uint32_t workers = 1;  // number of workers that the job was launched with
  // How often earlier processes of this worker, which did not leave, have pushed. This process
  // skips the batches of these pushes.
  uint64_t pushes_before = 0;
  uint64_t lost_steps = 0;        // steps that an earlier incarnation had made, and that are lost
  bool late = false;              // training began before this worker came
  LearningRateSchedule schedule;  // workers apply it to their local steps
  // For each launch of the job that is over, the oldest first: how many pushes each worker made, by
  // its index; at most kMostPushes. The workers of this launch share the data that is left.
  std::vector<std::vector<uint64_t>> earlier_launches = {};
  // The addresses of the servers, each of which holds one stripe; the first decides. Empty: the one
  // server holds the whole vector.
  std::vector<std::string> servers = {};
  absl::optional<uint64_t> constants = {};  // the XXH3-64 of those that the job has
  bool takes_options = true;                // the server reads PushHeader's options and clip_norm
};

struct PushHeader {
  SessionId session;
  Sequence sequence;
  Step step;                // the step on whose parameters the gradient was computed
  Incarnation incarnation;  // of the server that made that step
  uint32_t samples = 1;
  absl::optional<float> loss;
  absl::optional<EncodingReport> encodings;        // if it has changed since the last push
  std::shared_ptr<const Attachments> attachments;  // null if there are none
  // With several servers: rises within the session with each push, also a repeated one, from 1.
  uint32_t attempt = 0;
  uint64_t row_bytes = 0;  // of the rows that it has, on all servers; see RowBytes()
  std::shared_ptr<const RunningMeans> running_means;  // null if there are none
  SharedOptions options;                              // of the worker's program at this push
  absl::optional<double> clip_norm;  // of the step's reduced gradient, in place of the server's
};

// Rows of one table of the layout.
struct RowIds {
  uint32_t table = 0;      // its index in the layout
  std::vector<RowId> ids;  // ascending
};

// What PushHeader::row_bytes counts for so many rows.
constexpr uint64_t RowBytes(uint64_t rows, uint32_t width) {
  return rows * (sizeof(RowId) + width * sizeof(float));
}

// The facts that a worker learns only after it has begun to send a gradient. The server uses them
// in place of the header's values.
struct PushSummary {
  uint32_t samples = 1;
  absl::optional<float> loss;
  std::shared_ptr<const RunningMeans> running_means;
  SharedOptions options;
  absl::optional<double> clip_norm;
};

struct PushOutcome {
  Disposition disposition = Disposition::kAccepted;
  Step step;
  Incarnation incarnation;
  uint64_t staleness = 0;
  absl::optional<Disposition> first_disposition;  // of a duplicate: the first answer
  std::string options_differ;                     // see DifferenceOf(); empty: they do not
};

struct InitializeOutcome {
  bool accepted = false;
  Step step;
};

struct PullRequest {
  SessionId session;
  Step min_step;                   // waits until the job has reached this step
  absl::optional<Step> have_step;  // this step's parameters need not be sent again
  // A push of this session: also waits until it is answered and the job's mode lets the worker
  // continue.
  absl::optional<Sequence> after;
  bool whole = false;  // parameters of one step, even where reads are inconsistent
  // A pull of rows: their bytes as float32. Absent: a pull of all parameters.
  absl::optional<uint64_t> row_bytes;
  // With several servers: rises within the session with each pull, from 1.
  uint64_t number = 0;
};

struct PullHeader {
  Step step;
  Incarnation incarnation;
  bool not_modified = false;     // the worker has this step already; no chunks follow
  bool inconsistent = false;     // chunks may be of later steps (AsySG-InCon)
  double learning_rate = 0;      // of that step; 0 if workers have optimizers of their own
  bool last = false;             // for observers: no step will follow
  uint64_t optimizer_steps = 0;  // up to that step: those that have changed the parameters
};

// An event of a job, which open sessions are told.
struct JobEvent {
  enum class Kind {
    kTrainingFinished,  // the last worker has left; `step` is final
    kDraining,          // the server is going down
    kEvicted,           // this session has ended: replaced, silent, too slow, or by the operator
    kPolicyChanged,     // `consistency` holds from `step` on
    kDeserted,  // training has finished and the last observer has left; only the server is told
  };
  Kind kind = Kind::kTrainingFinished;
  Step step;
  Consistency consistency;    // kPolicyChanged only
  std::string diverged = {};  // kDraining only: the text of DIVERGED, if that is why; else empty
};

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_PROTOCOL_TYPES_H_
