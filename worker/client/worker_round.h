// A round of a worker: one push, and the pull that follows it.

#ifndef SLUICE_WORKER_CLIENT_WORKER_ROUND_H_
#define SLUICE_WORKER_CLIENT_WORKER_ROUND_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "worker/client/held_parameters.h"
#include "worker/client/round_report.h"
#include "worker/client/worker_session.h"

namespace sluice {

// Externally synchronized. Destroying it cancels a push that was not answered.
class WorkerRound {
 public:
  // Begins a push of a gradient that is computed on `parameters`. Both references outlive this.
  // `options` are those of the program now; the summary of the batch has those of the push.
  WorkerRound(WorkerSession& session, HeldParameters& parameters, Sequence sequence,
              std::shared_ptr<const Attachments> attachments, SharedOptions options);

  // Null if there are none.
  const std::shared_ptr<const Attachments>& attachments() const { return header_.attachments; }

  // Whether parts of a gradient may be sent before the rest is known.
  static bool MaySendEarly(WorkerSession& session);
  // Called before PushPull(), for elements that were not sent.
  void SendEarly(uint64_t offset, const SharedFloats& part);

  // Called once. See ParameterClient. Joins again and repeats the push, until it is answered and
  // the parameters were pulled. `rows` may be null.
  absl::StatusOr<RoundReport> PushPull(const SharedFloats& gradient, PushSummary batch,
                                       std::shared_ptr<const RowGradients> rows,
                                       absl::Span<float> parameters);

  // See PushOutcome, once the push was answered.
  const std::string& options_differ() const { return options_differ_; }

  // Pulls the parameters only, in place of a round whose gradient is dropped.
  static absl::StatusOr<RoundReport> GiveUp(const WorkerSession& session, HeldParameters& held,
                                            absl::Span<float> parameters);

 private:
  static bool UsesOneCall(WorkerSession& session);
  // Whether the header is so large that one message might not hold it and a gradient.
  bool HasManyOptions() const;
  void StartPush(BatchIs batch);
  absl::StatusOr<RoundReport> TryExchange(const SharedFloats& gradient,
                                          absl::Span<float> parameters);
  absl::StatusOr<RoundReport> TryOneCall(const PullRequest& request, const SharedFloats& gradient,
                                         absl::Span<float> parameters);
  absl::StatusOr<Transfer> Push(const SharedFloats& gradient);
  absl::StatusOr<RoundReport> EndOverwritten(absl::Span<float> parameters);
  void AwaitTurn(const absl::Status& why) const;
  RoundReport ReportOf(const PushOutcome& outcome);

  WorkerSession& session_;
  HeldParameters& held_;
  PushHeader header_;
  std::shared_ptr<const RowGradients> rows_;
  std::unique_ptr<OutgoingPush> push_;   // null before StartPush(), and once it was answered
  GradientEncoder::Sent sent_;           // of that push
  bool open_ = true;                     // that push accepts more parts
  bool one_call_ = true;                 // may push and pull in one
  absl::optional<PushOutcome> outcome_;  // once a push of two calls was answered
  std::string options_differ_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_WORKER_ROUND_H_
