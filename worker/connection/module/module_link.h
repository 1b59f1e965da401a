// A trainer's end of the call that ModuleServer.Train is.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_LINK_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_LINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/credentials_source.h"
#include "worker/connection/module/module_session.h"

namespace sluice {

struct ModuleLinkOptions {
  std::string address;            // gRPC target of the model server
  std::string token;              // empty: none
  CredentialsSource credentials;  // empty: plaintext
  absl::Duration connect_timeout = absl::Seconds(60);
  std::string trainer;  // this trainer's name
};

// Waits for the model server and enters. UNAVAILABLE names the address and the reason; other errors
// are the server's. In the returned session a backward whose inputs need no gradient does not wait
// for its answer: an error of it is returned by the next call. Its destructor ends the call.
absl::StatusOr<std::unique_ptr<ModuleSession>> EnterModule(const ModuleLinkOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_LINK_H_
