// The oracle's model of workers and observers: one entry for each name. Each question looks at all
// entries.

#ifndef SLUICE_TESTS_SIMULATION_WORKERS_MODEL_H_
#define SLUICE_TESTS_SIMULATION_WORKERS_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"

namespace sluice {

// A place in the rank order: the index and the name. It is valid as long as the name is.
using ModelRank = std::pair<uint32_t, absl::string_view>;

struct ModelWorker {
  std::string name;
  bool observer = false;
  uint64_t nonce = 0;
  uint64_t session = 0;
  uint64_t process = 0;  // the first session of this process that the server remembers
  bool alive = false;    // present, or lost for less than its lease
  bool lost = false;     // its connection broke
  bool banned = false;   // evicted by the operator
  absl::Time evicted = absl::InfinitePast();  // by this incarnation, the latest time
  bool left = false;                          // by Leave
  bool joined = false;                        // in this incarnation of the server
  absl::Time heard;  // the latest heartbeat, or when the connection broke; the lease counts from it
  // When it waited for the server, which counts as nobody's delay.
  std::vector<std::pair<absl::Time, absl::Time>> served;
  uint32_t index = 0;
  uint64_t from = 0;  // the first step it takes part in
  uint64_t pushes = 0;
  bool excused = false;  // ssp: it was too slow, so the others do not wait for it
  uint64_t highest = 0;  // the highest sequence that was answered
  std::map<uint64_t, PushOutcome> answers;  // all of them that a checkpoint or a journal has
  uint64_t answered = 0;                    // pushes; also those whose answers are gone
  uint64_t stored_from = 0;                 // the server has discarded those before this one
  std::map<uint64_t, uint64_t> part_of;     // sequence -> step, of those that are part of one
  uint64_t pushes_before = 0;               // by earlier processes of this name
  // Nonces of earlier processes of this name whose answers are gone.
  std::vector<uint64_t> replaced;

  ModelRank rank() const { return {index, name}; }
  // Whether a process of this name may return and repeat a push that only this entry knows.
  bool MayBeRepeated() const { return !replaced.empty() || (highest > 0 && !left); }
  // Adds an answer. The latest 16 are stored; one that was discarded does not come back.
  void Answer(uint64_t sequence, const PushOutcome& outcome);
  // Adds the answers that an earlier entry of the same process has.
  void TakeAnswersOf(const ModelWorker& earlier);
  // The stored answer, or null.
  const PushOutcome* StoredAnswer(uint64_t sequence) const;
  // Whether its latest push that was answered is part of that step.
  bool IsPartOf(uint64_t step) const;

 private:
  void DiscardOldest();
};

// A few of them.
using ModelWorkers = absl::InlinedVector<const ModelWorker*, 8>;

class WorkersModel {
 public:
  // Opens a session. The worker takes part from step `from`, unless it has a place already. If
  // training has `started`, a late worker begins with the clock of the slowest. The data has a part
  // for each of the `launched` workers.
  ModelWorker& Open(const JoinRequest& request, uint64_t session, uint64_t from, absl::Time now,
                    bool started, uint32_t launched);

  // The entry with that name, or null.
  ModelWorker* Named(const std::string& name);
  const ModelWorker* Named(const std::string& name) const;
  // The entry with that open session, or null.
  ModelWorker* Of(uint64_t session);
  const ModelWorker* Of(uint64_t session) const;

  uint32_t CountKnown() const;
  uint32_t CountAlive(bool observers) const;
  // Workers that have joined and are connected.
  uint32_t CountThere() const;
  // Workers that have left in good order, if nobody has come in their place.
  uint32_t CountDone() const;
  // Workers that take part in `step`.
  ModelWorkers Members(uint64_t step) const;
  // The fewest pushes of a worker that is not excused or, if all are excused, the most of any.
  absl::optional<uint64_t> Slowest(const ModelWorker* except = nullptr) const;

  std::map<std::string, ModelWorker>& all() { return all_; }
  const std::map<std::string, ModelWorker>& all() const { return all_; }

 private:
  bool AreAllTaken(const std::string& claimant, uint32_t launched) const;
  // Another worker has its part of the data, and nobody has another one.
  bool SharesPart(const ModelWorker& worker, uint32_t launched) const;
  uint32_t FreeIndex(const std::string& claimant, uint32_t launched) const;
  // Whether a worker other than the claimant has that part of the data, or is done with it.
  bool IsPartTaken(const std::string& claimant, uint32_t part, uint32_t launched) const;

  std::map<std::string, ModelWorker> all_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_WORKERS_MODEL_H_
