// What the history keeps of one moment of the job.

#ifndef SLUICE_SERVER_WEB_HISTORY_SAMPLE_H_
#define SLUICE_SERVER_WEB_HISTORY_SAMPLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice {

// How a coarser row is made of finer ones: of a counter the last value counts, of a gauge the mean,
// of a peak the largest.
enum class ColumnKind { kCounter, kGauge, kPeak };

struct HistoryColumn {
  const char* name;
  ColumnKind kind;
};

// The columns of a row. Their order is that of the file.
inline constexpr std::array<HistoryColumn, 42> kColumns = {{
    {"time", ColumnKind::kCounter},  // seconds since 1970
    {"step", ColumnKind::kCounter},
    {"steps_per_second", ColumnKind::kGauge},
    {"loss", ColumnKind::kGauge},  // mean of the workers that pushed since the row before
    {"learning_rate", ColumnKind::kGauge},
    {"accepted", ColumnKind::kCounter},  // pushes, as are the next five
    {"stale", ColumnKind::kCounter},
    {"skipped", ColumnKind::kCounter},
    {"duplicate", ColumnKind::kCounter},
    {"rejected", ColumnKind::kCounter},
    {"aborted", ColumnKind::kCounter},
    {"bytes_received", ColumnKind::kCounter},  // as float32
    {"bytes_sent", ColumnKind::kCounter},
    {"wire_bytes_received", ColumnKind::kCounter},
    {"wire_bytes_sent", ColumnKind::kCounter},
    {"workers", ColumnKind::kGauge},
    {"waiting", ColumnKind::kPeak},         // seconds that the current step has waited
    {"in_progress", ColumnKind::kPeak},     // pushes that arrive or are queued
    {"memory", ColumnKind::kPeak},          // resident bytes of the server's process
    {"checkpoint_age", ColumnKind::kPeak},  // seconds since the last checkpoint
    {"in_flight", ColumnKind::kPeak},       // bytes of gradients that arrive or wait
    {"step_median", ColumnKind::kGauge},    // seconds of single steps, as is the next
    {"step_p99", ColumnKind::kPeak},
    {"part_wait", ColumnKind::kGauge},  // mean seconds of ServerSpan, as are the next four
    {"part_accumulate", ColumnKind::kGauge},
    {"part_apply", ColumnKind::kGauge},
    {"part_publish", ColumnKind::kGauge},
    {"part_encode", ColumnKind::kGauge},
    {"sync_median", ColumnKind::kGauge},  // seconds of single syncs of the journal, as is the next
    {"sync_p99", ColumnKind::kPeak},
    {"tasks_arrive", ColumnKind::kPeak},  // that wait or run on those threads, as are the next four
    {"tasks_step", ColumnKind::kPeak},
    {"tasks_encode", ColumnKind::kPeak},
    {"tasks_summary", ColumnKind::kPeak},
    {"tasks_hook", ColumnKind::kPeak},
    {"test_accuracy", ColumnKind::kGauge},  // in the row in which it was reported
    {"measured_step", ColumnKind::kGauge},  // the step of that accuracy, in the same row
    {"table_rows", ColumnKind::kGauge},     // of all tables on all servers, as are the next three
    {"table_bytes", ColumnKind::kPeak},
    {"row_reads", ColumnKind::kCounter},  // ids that were read
    {"row_hits", ColumnKind::kCounter},   // of them, those that were rows
    {"samples", ColumnKind::kCounter},    // of the gradients of this server process's steps
}};

inline constexpr size_t kTime = 0;
inline constexpr size_t kStep = 1;
inline constexpr size_t kLoss = 3;

// What the server knows of a worker at that moment.
enum class Activity : char {
  kNone = ' ',  // there is none
  kComputes = 'c',
  kPushes = 'p',   // a part of its gradient has arrived
  kPulls = 'u',    // parameters are being sent to it
  kWaits = 'w',    // it has contributed to the step, and waits for its end
  kLost = 'l',     // its connection broke, and its lease runs
  kStalled = 's',  // it has sent no gradient for far longer than it usually takes
};

inline constexpr size_t kLanes = 16;  // workers whose own history is kept

// NaN: unknown.
struct HistorySample {
  std::array<double, kColumns.size()> values;
  std::array<float, kLanes> losses;
  std::array<Activity, kLanes> activities;

  HistorySample() {
    values.fill(std::numeric_limits<double>::quiet_NaN());
    losses.fill(std::numeric_limits<float>::quiet_NaN());
    activities.fill(Activity::kNone);
  }
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_SAMPLE_H_
