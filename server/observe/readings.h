// Words and values that several readers derive from a server's state.

#ifndef SLUICE_SERVER_OBSERVE_READINGS_H_
#define SLUICE_SERVER_OBSERVE_READINGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/results.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

double Seconds(const google::protobuf::Duration& duration);
std::string TimeWords(absl::Duration duration);  // "0.3 s", "20 s", "2 min 4 s", "3 h 12 min"
std::string NumberWords(double number);  // three digits at most behind zeros: "0.476", "10", "1500"
std::string BytesWords(uint64_t bytes);  // "999 bytes", "4.1 kB", "123 MB"; MB is 10^6 bytes
std::string WorkersWords(uint64_t count);  // "1 worker", "12 workers"
// "w2 has sent no gradient for 40 s; it usually needs 0.3 s".
std::string StalledWords(const v1::StalledWorker& worker);
// Whom the current step waits for: "server 2 of 3"; or "w2 (last seen 4 s ago, lag 3, 4.1 kB of its
// push here), 17 more", of whom three are named at most; "2 workers still to join"; "1 more
// gradient". Empty: for nobody. A lag of one step, which most workers have, is not told.
std::string AwaitedWords(const v1::ServerState& state);
// When the latest step was made: ", 2 s after it began", or of a later incarnation ", 2 s after
// this server went on". Empty if this process has made none.
std::string TrainedWords(const v1::ServerState& state);

std::string PhaseName(v1::ServerPhase phase);                // "waiting for workers", "training"
std::string WarningName(v1::WarningKind kind);               // "loss_rises"
std::string VerdictName(v1::Verdict::Kind kind);             // "workers lost"
std::string ModeName(const v1::Consistency& consistency);    // "bounded"
std::string RulesWords(const v1::Consistency& consistency);  // "bounded, quorum 1, max_staleness 6"
std::string OptimizerName(const v1::OptimizerConfig& optimizer);  // "sgd"; empty: none is known

bool IsConstant(const v1::LearningRateSchedule& schedule);

// Returns how many of the pushes that are over got each answer: "accepted", 7; "stale", 1; and so
// on.
std::vector<std::pair<const char*, uint64_t>> Dispositions(const v1::PushCounters& pushes);

// The number of gradients of each staleness, from 0 on; the last one includes all larger ones.
std::vector<uint64_t> StalenessCounts(const v1::Staleness& staleness);

// The last results that were reported while the job trains, by name. Empty: none were.
Results MeasuredResults(const v1::ServerState& state);

// How long the current step has waited for that server; absent: it does not wait for it.
absl::optional<double> SecondsAwaited(const v1::ServerState& state, const v1::Server& server);

// Bytes of the messages that carried tensors, of all servers of the job.
struct WireTotals {
  uint64_t received = 0;
  uint64_t sent = 0;
};
// With several servers, each one counts its own: the sum leaves out what another server has moved
// in the last second.
WireTotals WireTotalsOf(const v1::ServerState& state, const std::vector<v1::Server>& servers);

// Whether its session is open: it is present, or lost with a running lease.
inline bool IsAlive(const v1::Worker& worker) {
  return worker.presence() == v1::PRESENT || worker.presence() == v1::LOST;
}

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_READINGS_H_
