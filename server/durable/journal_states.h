// What the servers of a job have reported on their journals. A step is durable when it is on the
// disks of all of them.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_STATES_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_STATES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace sluice {

// Externally synchronized. Server 0 is the leader.
class JournalStates {
 public:
  explicit JournalStates(uint32_t servers) : states_(servers) {}

  // That server has all steps up to this one on its disk.
  void NoteDurable(uint32_t server, Step step) {
    states_[server].durable = std::max(states_[server].durable, step);
  }
  // That server cannot write its journal, or can again.
  void NoteStopped(uint32_t server, const absl::Status& why) { states_[server].stopped = why; }

  // All steps up to this one are durable on all servers.
  Step durable() const {
    const auto least =
        std::min_element(states_.begin(), states_.end(),
                         [](const State& a, const State& b) { return a.durable < b.durable; });
    return least->durable;
  }
  // The error of a server that cannot write its journal, the one with the lowest number; OK if all
  // can.
  absl::Status stopped() const {
    const auto first = std::find_if(states_.begin(), states_.end(),
                                    [](const State& state) { return !state.stopped.ok(); });
    return first == states_.end() ? absl::OkStatus() : first->stopped;
  }

 private:
  struct State {
    Step durable;
    absl::Status stopped;
  };

  std::vector<State> states_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_STATES_H_
