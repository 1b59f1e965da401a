// Workers that come and go beside one server: some leave, some are killed.

#ifndef SLUICE_TESTS_SOAK_PROCESS_GROUP_H_
#define SLUICE_TESTS_SOAK_PROCESS_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/testing/process/process.h"

namespace sluice {

// OK while `process` works. An error, with its output, if it has ended by itself.
absl::Status CheckWorks(absl::string_view who, Process& process);

// Waits until `process` has ended. An error, with its output, unless its exit status is `expected`.
absl::Status AwaitEnd(absl::string_view who, Process& process, int expected = 0);

// For one thread.
class ProcessGroup {
 public:
  // Starts a worker of that name, which leaves when it is sent SIGTERM.
  using StartWorker = std::function<absl::StatusOr<std::unique_ptr<Process>>(const std::string&)>;

  ProcessGroup(StartWorker start, uint64_t seed) : start_(std::move(start)), random_(seed) {}

  absl::Status Start(uint32_t workers);

  // Takes one out, every other time by SIGKILL, and puts a new one, of another name, in its place.
  absl::Status Change();

  // Reads what they write. An error if one has ended that was not asked to.
  absl::Status Look();

  // All leave.
  absl::Status Leave();

  uint64_t joined() const { return joined_; }
  uint64_t left() const { return left_; }
  uint64_t killed() const { return killed_; }

 private:
  absl::Status Join(size_t place);
  absl::Status End(Process& worker, int signal, int expected);

  const StartWorker start_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Process>> workers_;
  uint64_t joined_ = 0;
  uint64_t left_ = 0;
  uint64_t killed_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SOAK_PROCESS_GROUP_H_
