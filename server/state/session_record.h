// The record of one worker or observer. SessionTable holds one record for each name, and
// checkpoints and the journal store records.

#ifndef SLUICE_SERVER_STATE_SESSION_RECORD_H_
#define SLUICE_SERVER_STATE_SESSION_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/encoding_report.h"
#include "common/protocol/protocol_types.h"
#include "server/state/time_spans.h"

namespace sluice {

// Receives the job's events. Called outside all locks, from any thread.
using JobListener = std::function<void(const JobEvent&)>;

enum class Presence {
  kPresent,
  kLost,     // its connection broke and its lease runs
  kLeft,     // it called Leave
  kEvicted,  // its lease ended, it has failed, it made others wait too long, or the operator
             // evicted it
};

// The answer to a push, and the step that it became part of, if it counted.
struct StoredAnswer {
  PushOutcome outcome;
  absl::optional<Step> part_of;
};

// Changes an answer that says that the push counts towards `step` to SKIPPED. In an answer to a
// repeated push, changes the first answer that it repeats. Returns whether anything has changed.
bool MarkLeftOut(Step step, PushOutcome* outcome);

// A plain value. SessionTable's records are externally synchronized; a copy is its owner's.
struct SessionRecord {
  // The number of answers that are stored for repeated pushes. A worker has one push in flight; the
  // other answers serve copies of earlier pushes that a slow network delays.
  static constexpr size_t kStoredAnswers = 16;
  // The most nonces that are stored, of processes whose answers were discarded.
  static constexpr size_t kStoredProcesses = 16;

  std::string worker;
  SessionRole role = SessionRole::kWorker;
  ProcessNonce process_nonce;
  SessionId session;
  std::string host;
  uint32_t pid = 0;
  std::string push_encoding;  // JoinRequest.push_encoding, only shown
  std::string pull_encoding;  // JoinRequest.pull_encoding, only shown
  std::string version;        // JoinRequest.version, only shown
  uint32_t index = 0;         // its rank among the workers; 0 for observers
  Presence presence = Presence::kPresent;
  absl::Time last_seen = absl::InfinitePast();      // its last call, or when its connection broke
  absl::Time awaited_until = absl::InfinitePast();  // after an eviction; see MayContinue()
  bool banned = false;                              // the operator evicted this process
  bool joined = false;                              // in this incarnation of the server
  std::string failure;      // why it cannot go on, if it has said so; only shown
  bool not_finite = false;  // its latest push was refused because of NaN or infinity
  JobListener listener;
  TimeSpans served;  // when it waited for this server, so that it made nobody else wait

  Step active_from;                  // the first step it takes part in
  uint64_t clock = 0;                // its pushes that counted or were skipped, for ssp
  bool excused = false;              // in ssp: others do not wait for it until it pushes
  absl::optional<Step> contributed;  // the latest step that a process of this name contributed to
  bool inherited = false;            // that was an earlier process
  Sequence last_sequence;            // the highest that was answered
  std::map<Sequence, StoredAnswer> answers;
  // Earlier processes of this name that had pushes answered and did not leave. Their answers are
  // discarded, so they must not repeat a push.
  std::vector<ProcessNonce> replaced;

  // Shown to people. The counts also tell how much of its data is done; see pushes_in_launch().
  Step last_gradient_step;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t skipped = 0;
  uint64_t pushes_before = 0;  // by earlier processes of this name that did not leave
  // How many of pushes_before and of its own pushes are in ShardCheckpoint::earlier_launches.
  uint64_t pushes_in_earlier_launches = 0;
  float loss = 0;
  EncodingReport encodings;  // that the worker chose
  // Type and size of the attachments of its latest push that counted and had attachments.
  std::vector<std::pair<std::string, size_t>> attachments;
  absl::Time last_push = absl::InfinitePast();
  // Between its latest pushes, about ten of them, of which no single one counts much. 0 before the
  // second push since it joined.
  absl::Duration push_interval;

  // Whether its session is open: it is present, or lost with a running lease.
  bool alive() const { return presence == Presence::kPresent || presence == Presence::kLost; }
  // Whether the job must expect more of it: its session is open, or it was evicted so recently that
  // it may be about to join again. One that is only slow hears of its eviction at its next call.
  bool MayContinue(absl::Time now) const {
    return alive() || (presence == Presence::kEvicted && !banned && now < awaited_until);
  }
  bool IsMemberOf(Step step) const {
    return role == SessionRole::kWorker && alive() && active_from <= step;
  }
  bool IsMissingFrom(Step step) const { return IsMemberOf(step) && contributed != step; }
  Rank rank() const { return {index, worker}; }
  // Whether it has sent no gradient for far longer than it usually takes, without the time in which
  // it had to wait for this server.
  bool HasStalled(absl::Time now) const {
    constexpr absl::Duration kLongest = absl::Seconds(10);
    return role == SessionRole::kWorker && presence == Presence::kPresent &&
           push_interval > absl::ZeroDuration() &&
           now - last_push - served.After(last_push) > std::max(kLongest, 10 * push_interval);
  }
  // Its name, process and host, for people: `"worker-1" (process 12 on node1)`.
  std::string Describe() const;
  // The same text, and why the worker cannot go on, if that is known.
  std::string DescribeFailure() const;
  uint64_t pushes() const { return accepted + stale + skipped; }
  // The pushes in this launch of the job, also those of earlier processes of this name.
  uint64_t pushes_in_launch() const {
    const uint64_t all = pushes_before + pushes();
    return all - std::min(all, pushes_in_earlier_launches);
  }

  void Contribute(Step step) {
    contributed = step;
    inherited = false;
  }
  // Stores the first answer to a push, and what the header reports about the worker.
  void Remember(const PushHeader& header, const StoredAnswer& answer, absl::Time now);

  bool HasReplaced(ProcessNonce process) const;
  // Whether a process of this name may return and repeat a push that is in this record only. One
  // that left has no push to repeat.
  bool MayBeRepeated() const {
    return !replaced.empty() || (last_sequence > Sequence() && presence != Presence::kLeft);
  }

  // The record with which another process of this name begins. Contributions of this one count.
  SessionRecord Successor() const;

  // A copy without the pushes that the worker made since it first contributed to `step`.
  // Checkpoints store it, because the current step is not part of them.
  SessionRecord Before(Step step) const;

  // Whether its latest push is part of `step`.
  bool IsPartOf(Step step) const {
    return !answers.empty() && answers.rbegin()->second.part_of == step;
  }

  // A copy that has only the answers to pushes that are part of `step`. The journal stores it.
  SessionRecord OnlyOf(Step step) const;

  // Changes this worker's pushes that counted towards `step` to skipped pushes.
  void LeaveOut(Step step);

  // Subtracts what Remember() counted for this outcome.
  void Uncount(const PushOutcome& outcome);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SESSION_RECORD_H_
