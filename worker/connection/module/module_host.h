// A model server's end of ModuleServer.Train: one call, one thread and one session for each
// trainer.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_HOST_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "worker/connection/module/module_session.h"

namespace sluice {

struct ModuleHostOptions {
  Address address;                // port 0: any free one
  std::string token;              // that callers must know; empty: none
  CredentialsSource credentials;  // empty: plaintext. They are read once, at the start
  uint32_t max_trainers = 64;     // at once
  uint32_t trainers = 0;  // that must have come before AwaitEnd() ends; 0: the job's workers
  // How long AwaitEnd() waits for a trainer to come again whose call ended without leaving.
  absl::Duration patience = absl::Seconds(60);
};

// Makes the session of a trainer of that name. Called by many threads at once.
using ModuleSessionFactory =
    std::function<absl::StatusOr<std::unique_ptr<ModuleSession>>(const std::string& trainer)>;

// Any thread may use it.
class ModuleHost {
 public:
  // Listens. UNAVAILABLE if it cannot; the credentials' own errors.
  static absl::StatusOr<std::unique_ptr<ModuleHost>> Start(const ModuleHostOptions& options,
                                                           ModuleSessionFactory factory);

  // Cancels the calls of the trainers that are still there, and waits until their threads are done.
  ~ModuleHost();

  ModuleHost(const ModuleHost&) = delete;
  ModuleHost& operator=(const ModuleHost&) = delete;

  const Address& address() const;

  // Waits until as many trainers have entered as are expected, and all have left or were lost for
  // too long. Trainers of the same name count once. A trainer that enters under the name of one
  // that is there replaces it: that one's call ends.
  void AwaitEnd();

  // The same for a limited time; returns whether that end has come.
  bool AwaitEndFor(absl::Duration longest);

 private:
  class Parts;
  explicit ModuleHost(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_HOST_H_
