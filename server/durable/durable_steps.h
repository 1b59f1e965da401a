// Which steps of a job are durable. A step is when it is in the journals of all servers, on their
// disks, and the leader's directory has a checkpoint that the journals continue. Used by
// DurableDirectory.
//
// The file `kept` has the last one that workers may have been told of.

#ifndef SLUICE_SERVER_DURABLE_DURABLE_STEPS_H_
#define SLUICE_SERVER_DURABLE_DURABLE_STEPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/storage/file_system.h"

namespace sluice {

// Any thread may call any method, but for Listen(). Server 0 is the leader.
class DurableSteps {
 public:
  static constexpr char kFileName[] = "kept";

  // `files` outlives it.
  DurableSteps(FileSystem& files, const std::string& directory, uint32_t servers)
      : files_(files), path_(directory + "/" + kFileName), journals_(servers) {}

  // The step that the file has; 0 if that is unknown.
  Step ReadKept() const;

  // `durable` hears of steps, once they are in the file. `journal_error` hears of the error of a
  // server that cannot write its journal, the one with the lowest number, and of OK when all can.
  // They are called outside the lock. Once, before a journal reports.
  void Listen(std::function<void(Step)> durable,
              std::function<void(const absl::Status&)> journal_error);

  // There is a checkpoint that the journals continue.
  void SetBase() ABSL_LOCKS_EXCLUDED(mu_);
  bool has_base() const ABSL_LOCKS_EXCLUDED(mu_);
  // That server has all steps up to this one on its disk.
  void NoteDurable(uint32_t server, Step step) ABSL_LOCKS_EXCLUDED(mu_);
  // That server cannot write its journal, or can again.
  void NoteStopped(uint32_t server, const absl::Status& why) ABSL_LOCKS_EXCLUDED(tell_mu_, mu_);

 private:
  struct Journal {
    Step durable;
    absl::Status stopped;
  };

  Step OnAllDisks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status FirstStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Tell() ABSL_LOCKS_EXCLUDED(mu_);
  void WriteKept(Step step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  FileSystem& files_;
  const std::string path_;
  std::function<void(Step)> durable_;
  std::function<void(const absl::Status&)> journal_error_;
  absl::Mutex tell_mu_;  // while the listener is told of a journal that cannot be written
  mutable absl::Mutex mu_;
  bool has_base_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Journal> journals_ ABSL_GUARDED_BY(mu_);  // by server
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_DURABLE_STEPS_H_
