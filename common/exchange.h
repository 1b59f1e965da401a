// What a worker and the server say to each other, as values. The wire's form of them is made in
// common/wire.h; their rules are in proto/sluice/v1/parameter_server.proto.

#ifndef SLUICE_COMMON_EXCHANGE_H_
#define SLUICE_COMMON_EXCHANGE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/consistency.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/sgd_options.h"

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
  Layout layout;
  SgdOptions optimizer;            // ignored for observers
  absl::optional<uint32_t> index;  // place among the workers, if the launcher gave one
};

struct Welcome {
  SessionId session;
  std::string job_id;
  Incarnation incarnation;
  Step step;  // the first this worker takes part in
  bool initialized = false;
  Sequence last_sequence;
  Consistency consistency;
  uint32_t index = 0;    // place among the workers
  uint32_t workers = 1;  // the job was launched with
};

struct PushHeader {
  SessionId session;
  Sequence sequence;
  Step step;  // whose parameters the gradient was computed on
  Incarnation incarnation;
  uint32_t samples = 1;
  absl::optional<float> loss;
};

enum class Disposition { kAccepted, kApplied, kStaleDropped, kDuplicate };

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
};

struct PullHeader {
  Step step;
  Incarnation incarnation;
  bool not_modified = false;
};

// Results a worker reports when it leaves, by name.
using Results = std::map<std::string, double>;

// What happens to a job after a session was welcomed.
struct JobEvent {
  enum class Kind {
    kTrainingFinished,  // the last worker has left; `step` is final
    kDraining,          // the server is going down
    kDeserted,  // training has finished and the last observer has left; told to the server alone
  };
  Kind kind = Kind::kTrainingFinished;
  Step step;
};

// "accepted", "applied", "stale", "duplicate".
absl::string_view DispositionName(Disposition disposition);

}  // namespace sluice

#endif  // SLUICE_COMMON_EXCHANGE_H_
