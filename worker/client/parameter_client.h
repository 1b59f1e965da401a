// A worker's part in the protocol: joins, numbers its pushes, and keeps its parameters in step.

#ifndef SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/encoding/encoding_plan.h"
#include "common/protocol/attachment.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/coverage.h"
#include "common/tensor/shared_floats.h"
#include "worker/compression/auto_encodings.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// What one round did.
struct RoundReport {
  Step step;  // whose parameters the worker holds now
  // What the server said first to the push; kStaleDropped also if the server has forgotten this
  // worker, so that nobody knows whether the push counted: it is not repeated then.
  Disposition disposition = Disposition::kAccepted;
  uint64_t staleness = 0;  // of the gradient, when it was judged
};

// Joins again by itself when the connection broke, the session ended, or the server came back, and
// repeats what was not answered; the server counts it once. To be used by one thread at a time.
class ParameterClient {
 public:
  // `encoding` is that of the gradients that are pushed. `pull` has to do with parameters only if
  // it is automatic; else they come as `connection` asks for them. Encodings are timed by `clock`,
  // which outlives this.
  explicit ParameterClient(std::unique_ptr<ServerConnection> connection,
                           GradientEncoding encoding = {}, EncodingChoice pull = {},
                           const Clock& clock = RealClock())
      : connection_(std::move(connection)),
        encoding_(std::move(encoding)),
        pull_(std::move(pull)),
        clock_(clock) {}

  // Joins and fills `parameters`, which hold the model's own on entry: they become the job's if it
  // has none, else they are replaced.
  absl::Status Join(const JoinRequest& request, absl::Span<float> parameters);

  // Pushes the gradient of `samples` samples, computed on the parameters that this worker holds,
  // and writes those to go on with to `parameters`, as soon as the job's mode lets this worker go
  // on. They may be the memory of `gradient`.
  absl::StatusOr<RoundReport> PushPull(const SharedFloats& gradient, uint32_t samples,
                                       absl::optional<float> loss, absl::Span<float> parameters);

  // Attaches something to the next push that begins. BAD_ARGUMENT if that has too much already.
  absl::Status Attach(Attachment attachment);

  // Sends a part of the gradient that the next PushPull() pushes, while the rest of it is still
  // being computed: each element once, in any order, and unchanged until then. Never fails: what
  // cannot be sent now, PushPull() sends, or it pushes all of the gradient again.
  void SendEarly(uint64_t offset, const SharedFloats& part);

  // The gradient that was sent early comes to nothing. What was attached to it goes with the next,
  // unless that has too much then.
  void GiveUpEarly();

  // Waits until every worker has left, and takes the final parameters. For an observer's session.
  absl::Status AwaitEnd(absl::Span<float> parameters);

  // Ends the session; once.
  absl::Status Leave(const Results& results);

  const Welcome& welcome() const { return welcome_; }
  Step step() const { return step_; }

 private:
  absl::Status PrepareEncodings();
  absl::Status OpenSession();
  // What this process has sent in earlier sessions.
  enum class Earlier { kNothing, kPushed };
  absl::Status Begin(Earlier earlier, absl::Span<float> parameters);
  absl::Status TryToBegin(Earlier earlier, const SharedFloats& own, absl::Span<float> parameters);
  absl::Status Rejoin();
  void LogReturn() const;
  // A push of which a part may have been sent.
  struct Round {
    PushHeader header;
    std::unique_ptr<OutgoingPush> push;
    Coverage sent;
    bool open = true;  // the push takes more
  };

  PushHeader NextHeader();
  void Send(uint64_t offset, const SharedFloats& part, Round& round) const;
  absl::StatusOr<RoundReport> TryExchange(Round round, const SharedFloats& gradient,
                                          absl::Span<float> parameters);
  absl::StatusOr<PushOutcome> Push(Round round, const SharedFloats& gradient);
  absl::StatusOr<RoundReport> GiveUpPush(absl::Span<float> parameters);
  absl::Status Pull(Step min_step, absl::Span<float> parameters,
                    absl::optional<Sequence> after = absl::nullopt);
  absl::Status Finish(std::unique_ptr<PendingPull> pull, const PullRequest& request,
                      absl::Span<float> parameters);

  const std::unique_ptr<ServerConnection> connection_;
  GradientEncoding encoding_;
  const EncodingChoice pull_;
  const Clock& clock_;
  std::unique_ptr<GradientEncoder> encoder_;  // null if gradients are sent as they are
  std::unique_ptr<AutoEncodings> auto_;       // null if nothing is chosen
  JoinRequest request_;
  Welcome welcome_;           // of the latest session
  Step step_;                 // of the parameters that this worker holds
  Incarnation incarnation_;   // as above
  double learning_rate_ = 0;  // of that step; 0 if unknown
  Sequence sequence_;
  Attachments attachments_;      // to the next push
  absl::optional<Round> early_;  // begun by SendEarly()
  Transfer pushed_;              // of the latest push; and pull
  Transfer pulled_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
