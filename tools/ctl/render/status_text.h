// The state of a server as one screen of text.

#ifndef SLUICE_TOOLS_CTL_RENDER_STATUS_TEXT_H_
#define SLUICE_TOOLS_CTL_RENDER_STATUS_TEXT_H_

#include <string>

#include "sluice/v1/admin.pb.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// The rules in words: "bounded, quorum 1, max_staleness 6; mean, in the order of arrival".
std::string RulesText(const v1::Consistency& consistency);

// "12 present, 1 lost, 0 left, 0 evicted".
std::string PresencesText(const v1::ListWorkersResponse& workers);

// Whom the step waits for, as in AwaitedWords(); "nobody" if it waits for none.
std::string AwaitedText(const v1::ServerState& state);

// The first line of a screen: "job 2515a06c at HOST:PORT: TRAINING, step 110, incarnation 1, …".
std::string HeadLine(const v1::ServerState& state, const std::string& address);

// "SLOW: step 12 has waited 6 s for …".
std::string VerdictText(const v1::ServerState& state);

// One screen, each line with its line end.
std::string StatusText(const v1::ServerState& state, const v1::ListWorkersResponse& workers,
                       const std::string& address);

// One line of `watch`.
std::string WatchLine(const v1::ServerState& state);

// What `policy show` and `policy set` print.
std::string PolicyText(const v1::ServerState& state);
std::string PolicySetText(const v1::SetPolicyResponse& response);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_STATUS_TEXT_H_
