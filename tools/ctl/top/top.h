// The loop of `sluicectl top`: keys in, screens out.

#ifndef SLUICE_TOOLS_CTL_TOP_TOP_H_
#define SLUICE_TOOLS_CTL_TOP_TOP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/ctl/client/operator_client.h"
#include "tools/ctl/render/worker_rows.h"

namespace sluice {

struct TopOptions {
  absl::Duration interval = absl::Seconds(1);
  SortKey sort = SortKey::kLag;
  absl::Duration patience = absl::Seconds(10);  // with a server that cannot be reached
};

// Runs until the user quits (q or SIGINT): OK. SIGTERM and SIGHUP end the process as they would
// without it. UNAVAILABLE if the server could not be reached for `patience`; other errors are the
// server's. The terminal is as it was in all of these cases.
absl::Status RunTop(std::unique_ptr<OperatorClient> client, const TopOptions& options);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_TOP_TOP_H_
