// The part of the page's JSON that tells of each server of the job, and of the tables of rows that
// all servers share. Names of tables are data in it, never markup.

#ifndef SLUICE_SERVER_WEB_PAGE_SERVERS_JSON_H_
#define SLUICE_SERVER_WEB_PAGE_SERVERS_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>

#include "server/observe/job_moment.h"

namespace sluice {

inline constexpr size_t kMostShownTables = 20;

// A list, in the order of the servers' indices.
nlohmann::json ServersJson(const JobMoment& moment);

// {"count": of all tables, "first": [the first kMostShownTables, in the layout's order]}.
nlohmann::json TablesJson(const JobMoment& moment);

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_SERVERS_JSON_H_
