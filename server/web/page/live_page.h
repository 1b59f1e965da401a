// The live page: charts of a job in a browser. operator_page.h has what changes it.
//
// /             the page: HTML, style sheets and scripts, built into the binary
// /api/state    JSON: what the Inspector says, and the newest row of the history
// /api/events   server-sent events: the same JSON, once a second; a slow reader gets the newest
// /api/history  JSON: the rows and events of the history

#ifndef SLUICE_SERVER_WEB_PAGE_LIVE_PAGE_H_
#define SLUICE_SERVER_WEB_PAGE_LIVE_PAGE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/serial_executor.h"
#include "common/storage/file_system.h"
#include "server/observe/job_moment.h"
#include "server/web/history/history.h"
#include "server/web/history/job_watch.h"
#include "server/web/history/span_window.h"
#include "server/web/http/http_feed.h"
#include "server/web/http/http_route.h"

namespace sluice {

struct LivePageOptions {
  std::string history_file;  // empty: the history does not survive the process
  FileSystem* files = &RealFileSystem();
  uint64_t memory_limit = 0;  // bytes that the process may use; 0: unknown
  bool journals = false;
};

// Look(), Show() and End() are called by one thread. It makes the JSON on a thread of its own, and
// writes the file on another: a slow disk does not hold up what is shown.
class LivePage {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);
  static constexpr absl::Duration kBetweenSaves = absl::Seconds(10);
  static constexpr size_t kMostWorkers = 40;  // in the table of workers

  // Reads the history's file. If it is missing or damaged, the history is empty, and of a damaged
  // one the log says so.
  explicit LivePage(const LivePageOptions& options);

  // Give it to the shard: it hears how long steps and their parts take, from any thread.
  SpanListener OnSpan() {
    return [this](ServerSpan span, absl::Duration length) { spans_.Observe(span, length); };
  }

  // Valid as long as the page lives.
  std::vector<HttpRoute> Routes();

  // Call it often, with RealClock()'s time. Once in kPeriod it asks `get`, unless it is still busy
  // with the last answer.
  void Look(absl::Time now, absl::FunctionRef<JobMoment()> get);

  // Shows a state at once.
  void Show(JobMoment moment);

  // Shows the last state, and saves the history. Nothing is published afterwards.
  void End(JobMoment last);

 private:
  void Take(const JobMoment& input) ABSL_LOCKS_EXCLUDED(mu_);
  void Load();
  void SaveSoon();
  void Save() ABSL_LOCKS_EXCLUDED(mu_);
  HttpResponse HistoryResponse() ABSL_LOCKS_EXCLUDED(mu_);
  HttpResponse StateResponse() const ABSL_LOCKS_EXCLUDED(mu_);

  const LivePageOptions options_;
  HttpFeed feed_;
  absl::Time next_ = absl::InfinitePast();
  SpanWindow spans_;
  JobWatch watch_;                           // of the executor's thread
  absl::Time saved_ = absl::InfinitePast();  // of the executor's thread, too
  std::atomic<bool> saving_{false};
  mutable absl::Mutex mu_;
  History history_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const std::string> state_ ABSL_GUARDED_BY(mu_);
  // Of the history as it is, once somebody has asked; else null. It takes long to make, and a MB.
  std::shared_ptr<const std::string> history_json_ ABSL_GUARDED_BY(mu_);
  uint64_t rows_taken_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  SerialExecutor file_executor_{"sluice-history"};
  SerialExecutor executor_{"sluice-page"};  // destroyed first
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_LIVE_PAGE_H_
