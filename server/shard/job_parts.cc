#include "server/shard/job_parts.h"

#include <utility>

namespace sluice {

JobParts::JobParts(const ShardOptions& options_, const Clock& clock_, JobListener owner,
                   PullRelease release)
    : options(options_),
      clock(clock_, options.tick),
      settings(options.consistency, options.schedule),
      roster(options, std::move(owner)),
      lifecycle(roster, clock),
      pulls(options.incarnation, std::move(release)),
      states(options.lease),
      step(settings, roster, pulls, clock),
      history(*this),
      admission(options, settings, history.incarnations(), roster, step, answers, clock),
      watch(*this),
      membership(*this) {}

}  // namespace sluice
