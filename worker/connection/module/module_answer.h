// Answers the requests of a trainer.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/v1/module_server.pb.h"
#include "worker/connection/module/module_session.h"

namespace sluice {

// Calls a session for the requests after `enter`. Used by one thread.
class ModuleAnswers {
 public:
  explicit ModuleAnswers(ModuleSession& session) : session_(session) {}

  // If the session refuses the request, or its tensors are not sound, or the answer is too large
  // for a message, the reply is a failure. After a backward that has failed, for whichever of these
  // reasons, the next step pushes nothing: its reply is that failure. BAD_ARGUMENT, which ends the
  // call, for an empty request or another `enter`.
  absl::StatusOr<v1::ModuleReply> Answer(v1::ModuleRequest&& request);

 private:
  absl::StatusOr<v1::ModuleReply> AnswerOf(v1::ModuleRequest&& request);
  v1::ModuleReply DropGradient();
  v1::ModuleReply Step(const v1::StepModule& message);

  ModuleSession& session_;
  absl::Status spoiled_;  // the first error of a backward since the gradient was 0
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_
