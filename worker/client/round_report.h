// The report on a round, which is a push and the pull that follows it.

#ifndef SLUICE_WORKER_CLIENT_ROUND_REPORT_H_
#define SLUICE_WORKER_CLIENT_ROUND_REPORT_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/protocol/disposition.h"

namespace sluice {

struct RoundReport {
  Step step;  // of the parameters that the worker holds now
  // The server's first answer to the push. It is also kStaleDropped if the server has forgotten
  // this process: then nobody knows whether the push counted, and the client does not repeat it.
  Disposition disposition = Disposition::kAccepted;
  uint64_t staleness = 0;  // of the gradient, when the server judged it
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_ROUND_REPORT_H_
