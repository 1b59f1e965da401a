// The client behind sluice.h: a ParameterClient whose calls run on a thread of their own.

#ifndef SLUICE_WORKER_C_CLIENT_H_
#define SLUICE_WORKER_C_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "worker/c/call_thread.h"
#include "worker/c/job.h"
#include "worker/c/sluice.h"
#include "worker/client/gradient_fingerprints.h"
#include "worker/client/parameter_client.h"
#include "worker/client/row_pull.h"

// One thread begins calls and waits for them. The calls themselves run on `calls_`, which
// alone uses `client_` and `observer_` meanwhile.
struct sluice_client {
 public:
  sluice_client(const sluice::Job& job, sluice::Layout layout, sluice::OptimizerConfig optimizer,
                absl::Span<float> parameters, const sluice_buffer& gradient);
  ~sluice_client();

  sluice_client(const sluice_client&) = delete;
  sluice_client& operator=(const sluice_client&) = delete;

  // The functions of sluice.h. They return FAILED_PRECONDITION when called out of turn.
  absl::Status SetRestore(sluice::ParameterClient::Restore restore);
  absl::Status KeepRunningMeans(sluice::RunningMeans elements);
  absl::Status SetRunningMeans(sluice::RunningMeans means);
  absl::Status BeginJoin();
  absl::Status BeginPush(uint32_t samples, absl::optional<float> loss);
  absl::Status BeginLeave();
  absl::Status BeginAwaitEnd();
  absl::Status BeginReport(sluice::Results results);
  absl::Status SendEarly(uint64_t offset, uint64_t count);
  absl::Status GiveUpEarly();
  absl::Status Attach(sluice::Attachment attachment);
  absl::Status SetTables(absl::Span<const sluice_table> tables);
  absl::Status SetConstants(absl::Span<const sluice_constant> constants);
  absl::Status BeginPullRows(uint32_t table, absl::Span<const sluice::RowId> ids, float* rows);
  absl::Status PrefetchRows(uint32_t table, absl::Span<const sluice::RowId> ids);
  absl::Status SetRowGradients(uint32_t table, absl::Span<const sluice::RowId> ids,
                               const float* gradients);

  // Nothing if the time is over.
  absl::optional<absl::Status> Wait(absl::Duration longest, sluice_round* round);

  const sluice_status& status() const { return status_; }
  // The numbers that sluice_earlier_launches() gives.
  const std::vector<uint64_t>& earlier_launches() const { return earlier_launches_; }

  // If the client is destroyed before it has left, it tells the server this reason.
  void SetFailure(const char* why) { failure_ = why; }

 private:
  enum class Part { kNew, kJoined, kLeft };

  absl::Status CheckJoined(absl::string_view call) const;
  absl::Status CheckNotSentEarly(const sluice::RunningMeans& means) const;
  void NoteComplete(const absl::Status& called, const sluice::ParameterClient& observer);
  bool has_one_buffer() const {
    return layout_.size() > 0 && parameters_.data() == gradient_.floats.data();
  }
  absl::Status Join(sluice::SessionRole role, std::unique_ptr<sluice::ParameterClient>* client);
  absl::Status Leave();
  absl::Status AwaitEnd();
  absl::Status CheckRows(absl::string_view call, uint32_t table,
                         absl::Span<const sluice::RowId> ids) const;
  absl::Status PullRows(const sluice::RowIds& rows, absl::Span<float> to);
  void NoteStatus();
  void ForgetEarly();
  sluice::RowGradients TakeRowGradients();

  const sluice::Job& job_;
  sluice::Layout layout_;
  sluice::OptimizerConfig optimizer_;
  const absl::Span<float> parameters_;
  const sluice_buffer gradient_;
  sluice::ParameterClient::Restore restore_;               // null unless has_one_buffer()
  std::unique_ptr<sluice::ParameterClient> client_;        // null before it joins
  std::unique_ptr<sluice::ParameterClient> observer_;      // from AwaitEnd() to the report
  std::map<uint32_t, sluice::RowPull> prefetched_;         // by table; `calls_` alone uses it
  std::map<uint32_t, sluice::RowGradient> row_gradients_;  // of the next push, by table
  sluice::ConstantMemory constants_;                       // of the layout's constants
  sluice::RunningMeans kept_means_;                        // that were named before the join
  sluice::RunningMeans running_means_;                     // of the next push
  sluice::GradientFingerprints sent_early_;
  sluice::Coverage early_coverage_;          // of them
  absl::optional<sluice::Step> final_step_;  // after AwaitEnd()
  sluice::RoundReport round_;                // written by the call that works
  Part part_ = Part::kNew;                   // likewise
  bool complete_ = true;   // the observer's parameters, and those in one buffer; likewise
  bool observed_ = false;  // the observer has pulled the parameters; likewise
  sluice_status status_ = {};
  std::string failure_;  // see SetFailure(); empty: the reason is not known
  std::vector<uint64_t> earlier_launches_;
  std::unique_ptr<sluice::CallThread> calls_;  // destroyed first, after its calls
};

#endif  // SLUICE_WORKER_C_CLIENT_H_
