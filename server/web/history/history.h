// The past of a job in bounded memory, coarser with age: rows of 1 s for 5 minutes, of 10 s for an
// hour, of a minute for 12 hours, of 10 minutes for a week. Some 1 MB when all are full.

#ifndef SLUICE_SERVER_WEB_HISTORY_HISTORY_H_
#define SLUICE_SERVER_WEB_HISTORY_HISTORY_H_

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/web/history/sample.h"

namespace sluice {

// Something that happened to the job.
struct HistoryEvent {
  double time = 0;  // seconds since 1970
  uint64_t step = 0;
  std::string kind;  // joined, left, lost, evicted, policy, rate, checkpoint, warning, server
  std::string text;  // for people; it may contain what a worker calls itself
};

// What the job was like when it was last seen.
struct RunFacts {
  std::string rules;    // "bounded, quorum 1, max_staleness 6"
  std::string verdict;  // "finished"
  // NaN: unknown.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  // without the schedule
  double loss = std::numeric_limits<double>::quiet_NaN();           // mean of the latest steps
};

// A plain value, externally synchronized.
class History {
 public:
  static constexpr size_t kMostEvents = 200;  // the oldest make room
  static constexpr size_t kMostEventBytes = 300;
  struct Ring {
    double period;  // seconds
    size_t rows;
  };
  static constexpr std::array<Ring, 4> kRings = {{{1, 300}, {10, 360}, {60, 720}, {600, 1008}}};

  // What follows is of that job. What there is of another one is forgotten.
  void BeginJob(const std::string& job_id);

  const std::string& job_id() const { return job_id_; }

  void SetFacts(RunFacts facts) { facts_ = std::move(facts); }
  const RunFacts& facts() const { return facts_; }

  // Adds what was seen at sample.values[kTime], which does not go back. The first one after
  // Decode() removes what the file has of later times: the clock was another one.
  void Add(const HistorySample& sample);
  // Of checkpoints that follow each other only the last one stays.
  void Add(HistoryEvent event);

  // The lane of a worker; kLanes if there is none for it. A new worker takes a free lane, or that
  // of a worker that is not in `alive`, whose past is then forgotten.
  size_t LaneOf(const std::string& worker, const absl::flat_hash_set<std::string>& alive);
  const std::array<std::string, kLanes>& lanes() const { return lanes_; }  // names; empty: free

  // All rows in order of time: each time is in the finest ring that still has it.
  std::vector<HistorySample> Rows() const;
  const std::deque<HistoryEvent>& events() const { return events_; }
  HistorySample Newest() const { return newest_; }  // that was added

  // The bytes of a file, and back. DATA_LOSS if they are damaged, or of another version; then
  // nothing has changed.
  std::string Encode() const;
  absl::Status Decode(absl::string_view bytes);

 private:
  // A row that is not over yet.
  struct OpenRow {
    HistorySample row;
    std::array<uint32_t, kColumns.size()> counts{};  // of values in a mean
    std::array<uint32_t, kLanes> loss_counts{};
    int64_t number = -1;  // time / period; -1: it is empty
  };

  static void Merge(const HistorySample& sample, OpenRow* open);
  void ForgetSince(double time);
  void AddToRing(const HistorySample& sample, size_t ring);
  void Forget(size_t lane);

  std::string job_id_;
  RunFacts facts_;
  bool from_file_ = false;  // since Decode(), until something is added
  HistorySample newest_;
  std::array<std::deque<HistorySample>, kRings.size()> rings_;
  std::array<OpenRow, kRings.size()> open_;
  std::array<std::string, kLanes> lanes_;
  std::deque<HistoryEvent> events_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_HISTORY_H_
