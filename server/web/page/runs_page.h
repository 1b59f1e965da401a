// The runs that the page lays over the job.
//
// GET /api/runs  JSON: {"directory": text, "error": text, "read": when, "runs": [{"name", "job",
// "rules", "verdict", "learning_rate", "loss", "begun", "seen", "step", "curve": {"time": [],
// "step": [], "loss": []}}]}; times are seconds since 1970, null is unknown

#ifndef SLUICE_SERVER_WEB_PAGE_RUNS_PAGE_H_
#define SLUICE_SERVER_WEB_PAGE_RUNS_PAGE_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/serial_executor.h"
#include "server/web/history/run_files.h"
#include "server/web/http/http_route.h"

namespace sluice {

// Any thread may call any method. The directory is read on a thread of its own: at the beginning,
// and when somebody asks and what there is is older than kBetweenReads. Who asks gets what there
// is.
class RunsPage {
 public:
  static constexpr absl::Duration kBetweenReads = absl::Seconds(10);

  // `directory`: see RunFiles; empty: there are no runs.
  explicit RunsPage(const std::string& directory);

  // Valid as long as the object lives.
  HttpRoute Route();

 private:
  HttpResponse Answer() ABSL_LOCKS_EXCLUDED(mu_);
  void ReadSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Read() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string directory_;
  RunFiles files_;     // of the executor's thread
  std::string error_;  // of the executor's thread, too: why they cannot be read
  absl::Mutex mu_;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time read_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::shared_ptr<const std::string> json_ ABSL_GUARDED_BY(mu_);
  SerialExecutor executor_{"sluice-runs"};  // destroyed first
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_RUNS_PAGE_H_
