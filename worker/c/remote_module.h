// A trainer's end of a model server behind sluice.h: a ModuleSession whose calls run on a thread of
// their own.

#ifndef SLUICE_WORKER_C_REMOTE_MODULE_H_
#define SLUICE_WORKER_C_REMOTE_MODULE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "worker/c/call_thread.h"
#include "worker/c/job.h"
#include "worker/c/sluice.h"
#include "worker/c/trainer_session.h"
#include "worker/connection/module/module_link.h"
#include "worker/connection/module/module_session.h"

// One thread begins calls and waits for them.
struct sluice_module {
 public:
  explicit sluice_module(sluice::ModuleLinkOptions options) : options_(std::move(options)) {}

  // The functions of sluice.h.
  absl::Status BeginEnter();
  absl::Status BeginAsk(const sluice_module_request& request);
  absl::optional<absl::Status> Wait(absl::Duration longest, sluice_module_reply* reply);
  sluice_module_place place() const;

 private:
  using Ask = std::function<absl::Status(sluice::TrainerSession& session)>;

  // What `request` asks of a session; it has a copy of all that the request shows.
  absl::StatusOr<Ask> AskOf(const sluice_module_request& request);
  Ask Forward(const sluice_module_request& request, std::vector<sluice::PlainTensor> inputs);
  Ask Backward(uint64_t call, sluice::PlainTensor gradient);
  Ask Call(const sluice_module_request& request, std::vector<sluice::PlainTensor> arguments);

  const sluice::ModuleLinkOptions options_;
  std::unique_ptr<sluice::TrainerSession> session_;  // null before it has entered
  // What the last call has brought; `of_c_` shows the rest.
  std::vector<sluice::PlainTensor> tensors_;
  std::vector<std::string> names_;
  std::string plain_;
  sluice::RoundReport round_;
  std::vector<sluice_module_tensor> of_c_;
  sluice::CallThread calls_;  // destroyed first, after its calls
};

#endif  // SLUICE_WORKER_C_REMOTE_MODULE_H_
