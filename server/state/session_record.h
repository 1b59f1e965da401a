// One worker or observer, as the server knows it.

#ifndef SLUICE_SERVER_STATE_SESSION_RECORD_H_
#define SLUICE_SERVER_STATE_SESSION_RECORD_H_

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
#include "server/aggregation/contributions.h"

namespace sluice {

// Told what happens to the job; called outside all locks, from any thread.
using JobListener = std::function<void(const JobEvent&)>;

enum class Presence {
  kPresent,
  kLost,     // its connection broke; its lease runs
  kLeft,     // in good order
  kEvicted,  // its lease ended, or it held others up, or the operator removed it
};

// What a push was answered, and the step it became part of, if it counted.
struct KeptAnswer {
  PushOutcome outcome;
  absl::optional<Step> part_of;
};

// One worker or observer.
struct SessionRecord {
  // Answers kept for repeated pushes. A worker has one push under way at a time; more is for slow
  // networks.
  static constexpr size_t kKeptAnswers = 16;

  std::string worker;
  SessionRole role = SessionRole::kWorker;
  ProcessNonce process_nonce;
  SessionId session;
  std::string host;
  uint32_t pid = 0;
  std::string push_encoding;  // as it says, and the next
  std::string pull_encoding;
  uint32_t index = 0;  // place among the workers; 0 for observers
  Presence presence = Presence::kPresent;
  absl::Time last_seen = absl::InfinitePast();  // when it called, or its connection broke
  bool banned = false;                          // the operator removed this process
  bool joined = false;                          // in this life of the server
  JobListener listener;

  Step active_from;                  // the first step it takes part in
  uint64_t clock = 0;                // pushes that were counted or skipped, for ssp
  bool excused = false;              // in ssp: the others wait for it no more until it pushes
  absl::optional<Step> contributed;  // the latest step it contributed to
  Sequence last_sequence;            // highest that was answered
  std::map<Sequence, KeptAnswer> answers;

  // For people.
  Step last_gradient_step;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t skipped = 0;
  uint64_t pushes_before = 0;  // of earlier processes of this name that had not left
  float loss = 0;
  EncodingReport encodings;  // that it has chosen
  // Type and size of what came with its latest push that counted and had some.
  std::vector<std::pair<std::string, size_t>> attachments;
  absl::Time last_push = absl::InfinitePast();

  // Whether it speaks, or may yet return.
  bool alive() const { return presence == Presence::kPresent || presence == Presence::kLost; }
  bool IsMemberOf(Step step) const {
    return role == SessionRole::kWorker && alive() && active_from <= step;
  }
  bool IsMissingFrom(Step step) const { return IsMemberOf(step) && contributed != step; }
  Rank rank() const { return {index, worker}; }
  uint64_t pushes() const { return accepted + stale + skipped; }

  // Keeps the first answer to a push, and what it tells about its worker.
  void Remember(const PushHeader& header, const KeptAnswer& answer, absl::Time now);

  // As if it had not pushed since it first contributed to `step`.
  SessionRecord Before(Step step) const;

  // Whether its latest push is part of `step`.
  bool IsPartOf(Step step) const {
    return !answers.empty() && answers.rbegin()->second.part_of == step;
  }

  // With the answers to pushes that are part of `step` alone.
  SessionRecord OnlyOf(Step step) const;

  // Takes back what Remember() counted.
  void Uncount(const PushOutcome& outcome);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SESSION_RECORD_H_
