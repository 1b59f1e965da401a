// How a training has ended: the exit code of a server, and why.

#ifndef SLUICE_SERVER_JOB_OUTCOME_H_
#define SLUICE_SERVER_JOB_OUTCOME_H_

#include <string>
#include <vector>

#include "server/shard/shard.h"

namespace sluice {

// Exit codes; Server::Serve() says what they mean.
inline constexpr int kEndedWell = 0;
inline constexpr int kNotRestored = 1;
inline constexpr int kReplicaLost = 1;
inline constexpr int kEveryWorkerLost = 3;
inline constexpr int kUnbalancedCounters = 4;
inline constexpr int kNotSaved = 5;
inline constexpr int kDiverged = 7;
inline constexpr int kNotFinite = 8;

// Whether a process has joined in this incarnation of the server.
bool AnyHasJoined(const std::vector<SessionRecord>& sessions);

// The exit code, as far as it is known before the last calls have ended. `finished`: whether all
// workers have gone.
int OutcomeOf(const Shard& shard, bool finished);

// Whether the counters of pushes balance, when all calls have ended. If not, the server has a bug.
bool CountersBalance(const Shard& shard);

// Of a job that a signal ends: the workers that were lost before, for which a launcher may have
// sent it. Empty if there is none; else it begins with "; ".
std::string LostBefore(const std::vector<SessionRecord>& sessions);

// Why training ends with kEveryWorkerLost, kNotFinite or kDiverged.
std::string WhyItEnds(int code, const std::vector<SessionRecord>& sessions);

}  // namespace sluice

#endif  // SLUICE_SERVER_JOB_OUTCOME_H_
