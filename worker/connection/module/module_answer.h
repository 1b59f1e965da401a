// Answers one request of a trainer.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_

#include "absl/status/statusor.h"
#include "sluice/v1/module_server.pb.h"
#include "worker/connection/module/module_session.h"

namespace sluice {

// Calls `session` for a request after `enter`. If the session or the request's tensors are refused,
// the reply is a failure. BAD_ARGUMENT, which ends the call, for an empty request or another
// `enter`.
absl::StatusOr<v1::ModuleReply> AnswerModule(v1::ModuleRequest&& request, ModuleSession& session);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_ANSWER_H_
