// The JSON that the page's scripts read. Names of workers are data in it, never markup.

#ifndef SLUICE_SERVER_WEB_PAGE_PAGE_JSON_H_
#define SLUICE_SERVER_WEB_PAGE_PAGE_JSON_H_

#include <string>
#include <vector>

#include "server/observe/job_moment.h"
#include "server/web/history/history.h"
#include "server/web/history/job_watch.h"
#include "server/web/page/live_page.h"

namespace sluice {

// The state, at most LivePage::kMostWorkers of the workers (those that others wait for and the
// newest come first, then the slowest), and the newest row of the history.
std::string StateJson(const JobMoment& input, const LivePageOptions& options,
                      const std::vector<SeenWorker>& workers, const History& history);

// All rows, by column, and all events.
std::string HistoryJson(const History& history);

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_PAGE_JSON_H_
