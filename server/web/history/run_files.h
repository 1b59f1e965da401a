// The earlier runs that the page lays over the job: the jobs whose --checkpoint-dir lies in one
// directory. What a run was like is read from the file page-history in there, which its own page
// has written.

#ifndef SLUICE_SERVER_WEB_HISTORY_RUN_FILES_H_
#define SLUICE_SERVER_WEB_HISTORY_RUN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/input_file.h"
#include "server/web/history/history.h"

namespace sluice {

// A point of a run's curve.
struct RunPoint {
  double time = 0;  // seconds since 1970
  double step = 0;
  double loss = 0;  // a number
};

struct PastRun {
  std::string name;  // of its directory
  std::string job_id;
  RunFacts facts;
  double begun = 0;  // seconds since 1970: the first row with a loss; without one, the first row
  double seen = 0;   // the last row
  double step = 0;   // the last one
  std::vector<RunPoint> points;
};

// The curve of a history, in at most `most` points in the order of time: means of rows that follow
// each other, each at the place of the row in the middle.
std::vector<RunPoint> CurveOf(const History& history, size_t most);

// Reads the runs of a directory, and keeps what has not changed. Used by one thread, which may wait
// for the disk.
class RunFiles {
 public:
  static constexpr size_t kMostEntries = 1000;     // of the directory are looked at
  static constexpr size_t kMostRuns = 20;          // those that were written last
  static constexpr size_t kMostPoints = 300;       // of a run
  static constexpr uint64_t kMostBytes = 4 << 20;  // of a file

  explicit RunFiles(std::string directory) : directory_(std::move(directory)) {}

  // The runs, the one that began last first. Links are not followed, and what is no history of this
  // version, or has no row, is left out; it may be written at the same time. Errors: the directory
  // cannot be read.
  absl::StatusOr<std::vector<PastRun>> Read();

 private:
  struct Stamp {
    absl::Time written = absl::InfinitePast();  // of a file that was not read
    uint64_t bytes = 0;
    uint64_t inode = 0;
    bool operator==(const Stamp& other) const {
      return written == other.written && bytes == other.bytes && inode == other.inode;
    }
  };
  struct Known {
    Stamp stamp;
    bool sound = false;  // else it is no history
    PastRun run;
  };

  static Stamp StampOf(const InputFile& file);
  static std::vector<std::pair<Stamp, std::string>> Newest(int directory);
  static Known ReadOne(int directory, const std::string& name);

  const std::string directory_;
  std::map<std::string, Known> known_;  // by name
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_RUN_FILES_H_
