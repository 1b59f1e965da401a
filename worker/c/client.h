// The client behind sluice.h: a ParameterClient whose calls run on a thread of their own. This file
// says which call may be made when.

#ifndef SLUICE_WORKER_C_CLIENT_H_
#define SLUICE_WORKER_C_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "worker/c/call_thread.h"
#include "worker/c/client_calls.h"
#include "worker/c/job.h"
#include "worker/c/next_push.h"
#include "worker/c/sluice.h"

// One thread begins calls and waits for them. The calls themselves run on `thread_`, which alone
// uses `calls_` meanwhile.
struct sluice_client {
 public:
  sluice_client(const sluice::Job& job, sluice::ClientModel model);
  ~sluice_client();

  sluice_client(const sluice_client&) = delete;
  sluice_client& operator=(const sluice_client&) = delete;

  // The functions of sluice.h. They return FAILED_PRECONDITION when called out of turn.
  absl::Status SetRestore(sluice::ParameterClient::Restore restore);
  // Changes what the client joins with, for the function of sluice.h with that name.
  absl::Status Configure(absl::string_view call,
                         absl::FunctionRef<absl::Status(sluice::ClientModel&)> change);
  absl::Status BeginJoin();
  absl::Status BeginPush(uint32_t samples, absl::optional<float> loss);
  // For the functions of a worker that has joined, without arguments.
  absl::Status Begin(absl::string_view call, absl::Status (sluice::ClientCalls::*what)());
  absl::Status BeginReport(sluice::Results results);
  absl::Status SendEarly(uint64_t offset, uint64_t count);
  absl::Status GiveUpEarly();
  absl::Status SetTables(absl::Span<const sluice_table> tables);
  absl::Status SetConstants(absl::Span<const sluice_constant> constants);
  absl::Status BeginPullRows(uint32_t table, absl::Span<const sluice::RowId> ids, float* rows);
  absl::Status PrefetchRows(uint32_t table, absl::Span<const sluice::RowId> ids);
  absl::Status SetRowGradients(uint32_t table, absl::Span<const sluice::RowId> ids,
                               const float* gradients);

  // Changes the next push, for the function of sluice.h with that name.
  absl::Status Prepare(absl::string_view call,
                       absl::FunctionRef<absl::Status(sluice::NextPush&)> change);
  // The same for what the client itself notes of it, when what was sent early has left.
  absl::Status PrepareClient(absl::string_view call,
                             absl::FunctionRef<absl::Status(sluice::ParameterClient&)> change);

  // Nothing if the time is over.
  absl::optional<absl::Status> Wait(absl::Duration longest, sluice_round* round);

  const sluice_status& status() const { return status_; }
  // The numbers that sluice_earlier_launches() gives.
  const std::vector<uint64_t>& earlier_launches() const { return earlier_launches_; }

  // See sluice_slots().
  size_t Slots(absl::Span<sluice_slot> slots, uint64_t* optimizer_steps) const;

  // If the client is destroyed before it has left, it tells the server this reason.
  void SetFailure(const char* why) { failure_ = why; }

 private:
  absl::Status CheckJoined(absl::string_view call) const;
  // Whether these rows can be pulled now.
  absl::Status CheckRows(absl::string_view call, uint32_t table,
                         absl::Span<const sluice::RowId> ids) const;
  void NoteStatus();

  sluice::ClientModel model_;
  sluice::NextPush next_{model_.layout, model_.optimizer};
  sluice::ClientCalls calls_;
  sluice_status status_ = {};
  std::string failure_;  // see SetFailure(); empty: the reason is not known
  std::vector<uint64_t> earlier_launches_;
  std::unique_ptr<sluice::CallThread> thread_;  // destroyed first, after its calls
};

#endif  // SLUICE_WORKER_C_CLIENT_H_
