// The part of the live page that changes the job. It does what OperatorCommands does, for callers
// that the listener has admitted as gRPC admits Admin's.
//
// GET  /api/operator       JSON: the key for the requests below, if the caller may send them
// POST /api/drain          {}
// POST /api/evict          {"worker": "worker-3"}
// POST /api/learning-rate  {"learning_rate": 0.05}
// POST /api/checkpoint     {}; answers 202 with a number as soon as the checkpoint is begun
// GET  /api/checkpoint     ?save=NUMBER: 202 while it is being saved, then the outcome
// POST /api/record         {}; answers {"configuration": text, "log": [{"time", "severity",
// "text"}]}
//
// Other answers are JSON with a sentence, "text"; errors have Admin's.

#ifndef SLUICE_SERVER_WEB_PAGE_OPERATOR_PAGE_H_
#define SLUICE_SERVER_WEB_PAGE_OPERATOR_PAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "server/operator/log_ring.h"
#include "server/operator/operator_commands.h"
#include "server/web/http/http_route.h"

namespace sluice {

// Any thread may call any method. It outlives the shards and directories that it was attached to.
class OperatorPage {
 public:
  // `configuration` is a text for people; empty: unknown.
  OperatorPage(std::string configuration, std::shared_ptr<const LogRing> log)
      : configuration_(std::move(configuration)), log_(std::move(log)) {}

  // Valid as long as the object lives.
  std::vector<HttpRoute> Routes();

  // From now on requests change these, of which `durable` may be null, until Detach(). Detach()
  // returns when no request uses them any more. While it is detached, requests get UNAVAILABLE.
  void Attach(Shard& shard, DurableDirectory* durable) ABSL_LOCKS_EXCLUDED(mu_);
  void Detach() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr size_t kOutcomes = 16;  // of checkpoints that are kept
  using Command = std::function<HttpResponse(OperatorCommands&, const HttpRequest&)>;

  HttpRoute Route(const std::string& path, Command command);
  HttpResponse Record() const;
  HttpResponse SaveCheckpoint(OperatorCommands& commands);
  HttpResponse OutcomeOfSave(const HttpRequest& request) const ABSL_LOCKS_EXCLUDED(saves_mu_);

  const std::string configuration_;
  const std::shared_ptr<const LogRing> log_;
  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(saves_mu_);
  absl::optional<OperatorCommands> commands_ ABSL_GUARDED_BY(mu_);
  mutable absl::Mutex saves_mu_;
  uint64_t saves_ ABSL_GUARDED_BY(saves_mu_) = 0;
  std::map<uint64_t, HttpResponse> outcomes_ ABSL_GUARDED_BY(saves_mu_);  // by number
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_OPERATOR_PAGE_H_
