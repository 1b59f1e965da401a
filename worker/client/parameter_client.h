// A worker's side of the protocol. It joins a job, pushes gradients, and pulls the parameters of
// the next step. It is what RemoteOptimizer and the benchmarks use.

#ifndef SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/encoding/encoding_plan.h"
#include "common/protocol/attachment.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/coverage.h"
#include "common/tensor/running_means.h"
#include "common/tensor/shared_floats.h"
#include "worker/client/constant_memory.h"
#include "worker/client/pulled_means.h"
#include "worker/client/round_report.h"
#include "worker/client/row_cache.h"
#include "worker/client/row_pull.h"
#include "worker/compression/auto_encodings.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Owns its connection. It is used by one thread at a time.
//
// When the connection breaks, the session ends or the server comes back, the client joins again and
// repeats the push that was not answered, under the same sequence: the server counts it once. An
// error that a method returns is final: the server refused, or it did not come back.
//
// Parameters are pulled into the caller's memory. A pull that breaks off there leaves a mixture of
// two steps. The client knows that, and pulls again: it neither pushes a mixture nor a gradient
// that was computed on one, and never offers one to a server that has no parameters.
class ParameterClient {
 public:
  // Gradients are pushed in `encoding`. `pull` matters only if it is automatic: otherwise the
  // connection's own encoding of parameters is used. With several servers Join() refuses an
  // automatic choice that has an encoding of matrices. `clock` times encodings, and outlives this.
  explicit ParameterClient(std::unique_ptr<ServerConnection> connection,
                           GradientEncoding encoding = {}, EncodingChoice pull = {},
                           const Clock& clock = RealClock())
      : connection_(std::move(connection)),
        encoding_(std::move(encoding)),
        pull_(std::move(pull)),
        clock_(clock) {}

  // Joins a job. On entry `parameters` hold the model's own. If the job has no parameters yet, they
  // become the job's. Then every worker pulls the job's into `parameters`. After an error they are
  // the model's own again: a worker keeps a copy of them until this returns, in `request.memory` if
  // it has that, which holds zeroes then. An observer, or a worker after RestoreBy(), keeps none,
  // and after an error has perhaps a mixture.
  absl::Status Join(const JoinRequest& request, absl::Span<float> parameters);

  // The memory of each of the layout's constants, in their order. Join() reads it if the job has no
  // constants yet: then these become the job's. Otherwise it writes the job's there, unless they
  // are equal. So does a later call that joins a server which has come back without, or with
  // others. Call it before Join(), which fails with BAD_ARGUMENT if the memory does not fit the
  // layout. It must stay valid as long as this.
  void KeepConstants(ConstantMemory memory) { constants_ = std::move(memory); }

  // How often the job's were written there.
  uint64_t constants_pulled() const { return constants_pulled_; }

  // Pushes a gradient that was computed on `samples` samples and on the parameters that this worker
  // holds. Then waits until the job's mode lets this worker continue, and writes the parameters to
  // continue with to `parameters`. They may be the memory of `gradient` if parameters are pushed
  // (local steps), or after RestoreBy(). `loss` is the mean of the batch: the server shows it to
  // people, and tells by it whether training diverges; NaN counts. If the last call has left a
  // mixture, the gradient is dropped (kStaleDropped), and only the pull is made. DATA_LOSS if
  // `parameters` are a mixture, and the server has come back without any.
  absl::StatusOr<RoundReport> PushPull(const SharedFloats& gradient, uint32_t samples,
                                       absl::optional<float> loss, absl::Span<float> parameters);

  // For a program that keeps the parameters elsewhere, so that `parameters` carry gradients, too:
  // what Join() finds there does not matter. `restore` writes them to the vector that it is given.
  // It is called by Join() and PushPull(), and only before this worker offers its parameters to a
  // server that has none; the gradient is given up then (kStaleDropped). If it fails, nothing is
  // offered, and the call returns its error. After any error `parameters` may hold anything: the
  // next gradient is written anew. Call it before Join().
  using Restore = std::function<absl::Status(absl::Span<float> parameters)>;
  void RestoreBy(Restore restore) { restore_ = std::move(restore); }

  // Sets the rows whose gradients the next PushPull() pushes, of tables of the layout. If it drops
  // the gradient, it drops them, too. They are sent in the encoding of gradients if that is
  // float32, float16, bfloat16 or int8, with any byte layout and compressor; otherwise as they are.
  // What it rounds off is lost: error feedback is for the vector only.
  void SetRows(RowGradients rows);

  // For a model with running means (common/tensor/running_means.h), which a stale push would set
  // back. Names all elements that may be running means; their decay is not read. BAD_ARGUMENT from
  // Join() if the layout has others in their place. Call it before Join().
  void KeepRunningMeans(RunningMeans elements) { running_elements_ = std::move(elements); }
  // Says which of these elements of `gradient` are running means in the next PushPull(), and how
  // much of the value that this worker pulled is left in them (their decay). Writes to `gradient`
  // what they have gained. In sync and backup no stale push counts, so values can be averaged.
  // There it writes only to elements with a decay of 1, so that the server's values keep their
  // bits.
  void SetRunningMeans(const RunningMeans& means, absl::Span<float> gradient);

  // Writes rows to `to`, one after the other: of tables in ascending order, and their ids. They are
  // of a step that is not earlier than the parameters that this worker holds. Repeats the pull as
  // PushPull() does, and joins again if the session ends. There may be any number of ids: rows that
  // do not fit into one call are pulled by several, which may bring different steps. BAD_ARGUMENT
  // if `to` has another size than the rows, FAILED_PRECONDITION after Leave().
  absl::Status PullRows(const std::vector<RowIds>& rows, absl::Span<float> to);
  // Begins to pull them, and returns at once. FinishRows() takes what this returned, and does what
  // PullRows() does if it has failed. Other calls may be made between the two; with several
  // servers, rows are pulled anew if one of them has pulled.
  RowPull StartRows(const std::vector<RowIds>& rows);
  absl::Status FinishRows(RowPull pull, absl::Span<float> to);

  // Rows that were pulled are used again for some steps; see RowCache. Call it before Join(), which
  // then fails with BAD_ARGUMENT in sync and backup, where all rows are of the worker's step.
  void CacheRows(const RowCacheOptions& options) { cache_options_ = options; }
  // How many rows PullRows() and FinishRows() have given, and how many of them the server has sent.
  struct RowCounts {
    uint64_t given = 0;
    uint64_t sent = 0;
  };
  RowCounts row_counts() const { return row_counts_; }

  // Adds an attachment to the next push that begins. BAD_ARGUMENT if that push has too many.
  absl::Status Attach(Attachment attachment);

  // Sends a part of the gradient that the next PushPull() pushes, while the rest is still being
  // computed. If the model has tables, nothing is sent early: rows come first, and are not known.
  // Nor is anything of a small vector, which is pushed and pulled in one call. Each element is sent
  // once, in any order, and must not change until PushPull(). This never fails: PushPull() sends
  // what could not be sent, or pushes the whole gradient again.
  void SendEarly(uint64_t offset, const SharedFloats& part);

  // Drops the gradient of which a part was sent early. Its attachments go with the next push,
  // unless that has too many then.
  void GiveUpEarly();

  // Whether the parameters that the last call wrote to are complete. If not, an error has left a
  // mixture of two steps there; do not use them before a PushPull() has returned a report.
  bool parameters_complete() const { return complete_; }

  // For an observer's session: waits until every worker has left, and takes the final parameters.
  // UNAVAILABLE if the server went down before; DIVERGED if it did because training diverged.
  absl::Status AwaitEnd(absl::Span<float> parameters);

  // Ends the session. Called once. If the connection is broken, or the server was started again, it
  // joins again for that. DATA_LOSS if the server has lost steps that this worker holds.
  absl::Status Leave(const Farewell& farewell);
  // The same, but it does not join again. For a caller that does not want to wait for a server.
  absl::Status LeaveAtOnce(const Farewell& farewell);

  const Welcome& welcome() const { return welcome_; }
  Step step() const { return step_; }

 private:
  absl::Status PrepareEncodings();
  absl::Status OpenSession();
  absl::Status TakeConstants();
  absl::StatusOr<uint64_t> OfferConstants(uint64_t checksum);
  absl::Status FitEncodings();
  absl::Status CheckFitStripes(uint32_t servers);
  enum class Earlier { kNothing, kPushed };  // what this process did in an earlier session
  absl::Status Begin(Earlier earlier, absl::Span<float> parameters);
  absl::Status BeginWith(absl::Span<const float> own, Earlier earlier,
                         absl::Span<float> parameters);
  bool MustOffer() const;
  absl::Status TryToBegin(Earlier earlier, absl::Span<float> parameters);
  absl::Status PullOffered(const PullRequest& request, absl::Span<float> parameters);
  absl::Status TakeOthers(const PullRequest& request, absl::Span<float> parameters);
  absl::Status Rejoin();
  absl::Status CheckHasRows() const;
  const std::vector<TableSpec>& tables() const { return request_.layout.tables(); }
  absl::Status CheckTables(const std::vector<RowIds>& rows) const;
  uint64_t SizeOf(const std::vector<RowPull::Part>& parts) const;
  absl::Status CheckFinish(const RowPull& pull, absl::Span<float> to) const;
  PullRequest RowRequest() const;
  absl::Status FitRowCache();
  void StartPart(RowPull::Part& part);
  bool IsDropped(const RowPull::Part& part) const;
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request);
  absl::Status ReadParts(std::vector<RowPull::Part>& parts, absl::Span<float> to);
  absl::Status ReadWhole(std::vector<RowPull::Part>& parts, std::vector<float>* to);
  absl::Status ReadBesideCache(RowPull& pull, absl::Span<float> to);
  void KeepRows(const RowPull::Part& part, absl::Span<const float> rows);
  absl::Status ReadPart(RowPull::Part& part, absl::Span<float> to);
  absl::Status ReadOnce(RowPull::Part& part, absl::Span<float> to);
  bool AreLateEnough(const PullHeader& rows) const;
  void LogReturn() const;
  struct Round {  // a push, of which a part may have been sent
    PushHeader header;
    std::shared_ptr<const RowGradients> rows;  // or null
    std::unique_ptr<OutgoingPush> push;        // null before StartPush()
    GradientEncoder::Sent sent = {};           // without an encoder, of the whole vector
    bool open = true;                          // the push accepts more parts
    bool one_call = true;                      // may push and pull in one
    absl::optional<PushOutcome> outcome = {};  // once the push was answered
  };

  PushHeader NextHeader();
  void AwaitTurn(const absl::Status& why) const;
  void StartPush(Round& round, BatchIs batch) const;
  void SendRest(const SharedFloats& gradient, Round& round) const;
  absl::StatusOr<RoundReport> TryExchange(Round& round, const SharedFloats& gradient,
                                          absl::Span<float> parameters);
  bool UsesOneCall() const;
  absl::StatusOr<RoundReport> TryOneCall(const PushHeader& header, const PullRequest& request,
                                         const SharedFloats& gradient,
                                         absl::Span<float> parameters);
  RoundReport ReportOf(const PushOutcome& outcome) const;
  absl::StatusOr<PushOutcome> Push(Round& round, const SharedFloats& gradient);
  absl::StatusOr<RoundReport> GiveUpPush(absl::Span<float> parameters);
  absl::StatusOr<RoundReport> EndOverwritten(const Round& round, absl::Span<float> parameters);
  absl::Status Pull(Step min_step, absl::Span<float> parameters,
                    absl::optional<Sequence> after = absl::nullopt);
  absl::Status Finish(std::unique_ptr<PendingPull> pull, PullRequest request,
                      absl::Span<float> parameters);
  absl::Status Read(PendingPull& pull, absl::Span<float> parameters);
  void KeepHeader(const PullHeader& header, absl::Span<const float> parameters);

  const std::unique_ptr<ServerConnection> connection_;
  GradientEncoding encoding_;
  const EncodingChoice pull_;
  const Clock& clock_;
  uint32_t servers_ = 0;                      // that the next two are for; 0 before a session
  std::unique_ptr<GradientEncoder> encoder_;  // null if gradients are sent as they are
  std::unique_ptr<AutoEncodings> auto_;       // null if nothing is chosen
  JoinRequest request_;
  Welcome welcome_;  // of the latest session
  ConstantMemory constants_;
  absl::optional<uint64_t> constants_taken_;  // the checksum of the job's, once they were equal
  bool has_others_constants_ = false;         // the job's are another worker's
  uint64_t constants_pulled_ = 0;
  bool server_has_parameters_ = false;  // as far as the latest session has shown
  bool complete_ = true;                // see parameters_complete()
  Restore restore_;                     // null: `parameters` hold nothing else
  bool left_ = false;                   // Leave() was called
  Step step_;                           // of the parameters that this worker holds
  Incarnation incarnation_;             // of the server that made that step
  double learning_rate_ = 0;            // of that step; 0 if unknown
  Sequence sequence_;
  Attachments attachments_;                            // of the next push
  std::shared_ptr<const RowGradients> rows_;           // of the next push, or null
  RunningMeans running_elements_;                      // that may be running means
  PulledMeans pulled_means_;                           // of them, since Join()
  std::shared_ptr<const RunningMeans> running_means_;  // of the next push, or null
  RowCacheOptions cache_options_;
  std::unique_ptr<RowCache> row_cache_;  // null if each row is pulled
  RowCounts row_counts_;
  uint64_t pulls_ = 0;           // that were begun, of parameters and of rows
  absl::optional<Round> early_;  // begun by SendEarly()
  Transfer pushed_;              // the latest push
  Transfer pulled_;              // the latest pull
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
