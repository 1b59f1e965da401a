// The metrics of a server, as Prometheus reads them. Knows no HTTP: a listener asks for Text().

#ifndef SLUICE_SERVER_METRICS_SERVER_METRICS_H_
#define SLUICE_SERVER_METRICS_SERVER_METRICS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/durable/directory.h"
#include "server/observe/job_verdict.h"
#include "server/shard/shard.h"
#include "server/state/server_span.h"

namespace sluice {

class SpanHistograms;

// Any thread may call any method.
class ServerMetrics {
 public:
  // The type of what Text() returns, for HTTP.
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

  // An incarnation begins, with empty histograms. The listener is for its shard's options, and may
  // outlive this object.
  SpanListener BeginIncarnation() ABSL_LOCKS_EXCLUDED(mu_);

  // From now on Text() reads these, of which `durable` may be null, until Detach(). Detach()
  // returns when nobody reads them any more.
  void Attach(Shard& shard, const DurableDirectory* durable) ABSL_LOCKS_EXCLUDED(mu_);
  void Detach() ABSL_LOCKS_EXCLUDED(mu_);

  // From now on Text() also has the metrics of these models, but for the times of their steps. They
  // have the label `model`. The verdict without that label is the job's.
  void AddNamed(NamedShards named) ABSL_LOCKS_EXCLUDED(mu_);

  // All metrics, in Prometheus' text format. Between two incarnations only those of the process.
  std::string Text() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  NamedShards named_ ABSL_GUARDED_BY(mu_);  // null: there are none
  std::shared_ptr<SpanHistograms> spans_ ABSL_GUARDED_BY(mu_);
  Shard* shard_ ABSL_GUARDED_BY(mu_) = nullptr;
  const DurableDirectory* durable_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_METRICS_SERVER_METRICS_H_
