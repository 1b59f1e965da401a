// A worker's side of the protocol. It joins a job, pushes gradients, and pulls the parameters of
// the next step. It is what RemoteOptimizer and the benchmarks use.

#ifndef SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/running_means.h"
#include "common/tensor/shared_floats.h"
#include "worker/client/constant_memory.h"
#include "worker/client/held_parameters.h"
#include "worker/client/round_encodings.h"
#include "worker/client/round_report.h"
#include "worker/client/row_cache_options.h"
#include "worker/client/row_pull.h"
#include "worker/client/worker_round.h"
#include "worker/client/worker_rows.h"
#include "worker/client/worker_session.h"
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
  // Another worker's push for the same step may have other options of the optimizer, or another
  // clip norm. Then the later of the two warns once, or its PushPull() fails with
  // OPTIMIZER_MISMATCH.
  enum class IfOptionsDiffer { kWarns, kFails };

  // Gradients are pushed in `encoding`. `pull` matters only if it is automatic: otherwise the
  // connection's own encoding of parameters is used. With several servers Join() refuses an
  // automatic choice that has an encoding of matrices. `clock` times encodings, and outlives this.
  explicit ParameterClient(std::unique_ptr<ServerConnection> connection,
                           GradientEncoding encoding = {}, EncodingChoice pull = {},
                           const Clock& clock = RealClock(),
                           IfOptionsDiffer differ = IfOptionsDiffer::kWarns)
      : if_options_differ_(differ),
        session_(std::move(connection),
                 RoundEncodings(std::move(encoding), std::move(pull), clock)) {}

  // Joins a job. On entry `parameters` hold the model's own. If the job has no parameters yet, they
  // become the job's. Then every worker pulls the job's into `parameters`. After an error they are
  // the model's own again: a worker keeps a copy of them until this returns, in `request.memory` if
  // it has that, which holds zeroes then. An observer, or a worker after RestoreBy(), keeps none,
  // and after an error has perhaps a mixture.
  //
  // After Leave(), a worker may join again: `request` does not matter then, and it goes on with the
  // job's parameters, as after a session that was lost.
  absl::Status Join(const JoinRequest& request, absl::Span<float> parameters);

  // The memory of each of the layout's constants, in their order. Join() reads it if the job has no
  // constants yet: then these become the job's. Otherwise it writes the job's there, unless they
  // are equal. So does a later call that joins a server which has come back without, or with
  // others. Call it before Join(), which fails with BAD_ARGUMENT if the memory does not fit the
  // layout. It must stay valid as long as this.
  void KeepConstants(ConstantMemory memory) { session_.KeepConstants(std::move(memory)); }

  // How often the job's were written there.
  uint64_t constants_pulled() const { return session_.constants_pulled(); }

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
  //
  // `model` is for a job of MeanGradientOptions, which needs it: the program steps itself, and has
  // the model. `save` writes that to bytes when a worker that has come late needs it, and `load`
  // takes that of another worker. Join() and PushPull() call them. The model is then that of all
  // steps that step_to_take() has named; see held().
  using Restore = HeldParameters::Restore;  // absl::Status(absl::Span<float> parameters)
  using Model = HeldParameters::Model;
  void RestoreBy(Restore restore, Model model = {}) {
    parameters_.RestoreBy(std::move(restore), std::move(model));
  }

  // Sets the rows whose gradients the next PushPull() pushes, of tables of the layout. If it drops
  // the gradient, it drops them, too. They are sent in the encoding of gradients if that is
  // float32, float16, bfloat16 or int8, with any byte layout and compressor; otherwise as they are.
  // What it rounds off is lost: error feedback is for the vector only.
  void SetRows(RowGradients rows);

  // For a model with running means (common/tensor/running_means.h), which a stale push would set
  // back. Names all elements that may be running means; their decay is not read. BAD_ARGUMENT from
  // Join() if the layout has others in their place. Call it before Join().
  void KeepRunningMeans(RunningMeans elements) {
    parameters_.KeepRunningMeans(std::move(elements));
  }
  // Says which of these elements of `gradient` are running means in the next PushPull(), and how
  // much of the value that this worker pulled is left in them (their decay). Writes to `gradient`
  // what they have gained. In sync and backup no stale push counts, so values can be averaged.
  // There it writes only to elements with a decay of 1, so that the server's values keep their
  // bits.
  void SetRunningMeans(const RunningMeans& means, absl::Span<float> gradient);

  // The options of the optimizer in this worker's program, for the pushes that are made from now
  // on: of groups where they are not those of the JoinRequest. BAD_OPTIMIZER as CheckChanged(), or
  // if a push encoding with momentum excludes them; UNIMPLEMENTED if the server is too old. May be
  // called between SendEarly() and PushPull().
  absl::Status SetOptions(ChangedOptions::Groups changed);
  // Bounds the norm of the mean gradient of the step that the next PushPull() is part of.
  // INVALID_ARGUMENT unless it is a finite number above 0; UNIMPLEMENTED as above.
  absl::Status SetClipNorm(double norm);

  // Writes rows to `to`, one after the other: of tables in ascending order, and their ids. They are
  // of a step that is not earlier than the parameters that this worker holds. Repeats the pull as
  // PushPull() does, and joins again if the session ends. There may be any number of ids: rows that
  // do not fit into one call are pulled by several, which may bring different steps. BAD_ARGUMENT
  // if `to` has another size than the rows, FAILED_PRECONDITION after Leave().
  absl::Status PullRows(const std::vector<RowIds>& rows, absl::Span<float> to) {
    return FinishRows(StartRows(rows), to);
  }
  // Begins to pull them, and returns at once. FinishRows() takes what this returned, and does what
  // PullRows() does if it has failed. Other calls may be made between the two; with several
  // servers, rows are pulled anew if one of them has pulled.
  RowPull StartRows(const std::vector<RowIds>& rows) { return rows_.Start(rows); }
  absl::Status FinishRows(RowPull pull, absl::Span<float> to) {
    return rows_.Finish(std::move(pull), to);
  }

  // Rows that were pulled are used again for some steps; see RowCache. Call it before Join(), which
  // then fails with BAD_ARGUMENT in sync and backup, where all rows are of the worker's step.
  void CacheRows(const RowCacheOptions& options) { row_cache_ = options; }
  // How many rows PullRows() and FinishRows() have given, and how many of them the server has sent.
  using RowCounts = WorkerRows::Counts;
  RowCounts row_counts() const { return rows_.counts(); }

  // Returns what the server's optimizer remembers, of its latest step: no less than this worker's,
  // in sync the same. Joins again as PushPull() does. DEADLINE_EXCEEDED if several servers make
  // steps too fast, which cannot be in sync; UNIMPLEMENTED if the server is too old;
  // FAILED_PRECONDITION after Leave().
  absl::StatusOr<PulledSlots> PullSlots();

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

  // What the last call has left. held().complete(): whether the parameters that it wrote to are
  // complete. If not, an error has left a mixture of two steps there; do not use them before a
  // PushPull() has returned a report. held().step_to_take(): of a worker that steps itself, whether
  // it has brought the mean gradient of a step that the program is to take. If not, the model stays
  // as it is: that step was made without its gradients, or the model was taken from another worker,
  // or after Join() the vector has the job's first parameters.
  const HeldParameters& held() const { return parameters_; }

  // For an observer's session: waits until every worker has left, and takes the final parameters.
  // UNAVAILABLE if the server went down before; DIVERGED if it did because training diverged.
  absl::Status AwaitEnd(absl::Span<float> parameters);

  // Ends the session. Called once. If the connection is broken, or the server was started again, it
  // joins again for that, unless the caller does not want to wait for a server. DATA_LOSS if the
  // server has lost steps that this worker holds.
  enum class IfLost { kJoinsAgain, kGivesUp };
  absl::Status Leave(const Farewell& farewell, IfLost lost = IfLost::kJoinsAgain);

  const Welcome& welcome() const { return session_.welcome(); }
  Step step() const { return session_.held().step; }

 private:
  const IfOptionsDiffer if_options_differ_;
  WorkerSession session_;
  HeldParameters parameters_{session_};
  WorkerRows rows_{session_};
  RowCacheOptions row_cache_;
  Sequence sequence_;  // of the latest push
  // Of the next push. Those without entries are null.
  Attachments attachments_;
  std::shared_ptr<const RowGradients> row_gradients_;
  std::shared_ptr<const RunningMeans> running_means_;
  SharedOptions options_;               // of this and of later pushes
  absl::optional<double> clip_norm_;    // of the next push
  bool told_differ_ = false;            // that other workers have other options
  std::unique_ptr<WorkerRound> early_;  // begun by SendEarly(), or null
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PARAMETER_CLIENT_H_
