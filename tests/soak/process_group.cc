#include "tests/soak/process_group.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status CheckWorks(absl::string_view who, Process& process) {
  const auto ended = process.Wait(absl::ZeroDuration());
  if (!ended.ok()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(who, " ended by itself with ", *ended, "; it wrote:\n", process.output()));
}

absl::Status AwaitEnd(absl::string_view who, Process& process, int expected) {
  const auto status = process.Wait();
  if (!status.ok()) return status.status();
  if (*status == expected) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(who, " ended with ", *status, ", expected ", expected,
                                         "; it wrote:\n", process.output()));
}

absl::Status ProcessGroup::Start(uint32_t workers) {
  workers_.resize(workers);
  for (size_t place = 0; place < workers; ++place) {
    const absl::Status joined = Join(place);
    if (!joined.ok()) return joined;
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::Join(size_t place) {
  auto worker = start_(absl::StrCat("worker-", joined_++));
  if (!worker.ok()) return worker.status();
  workers_[place] = *std::move(worker);
  return absl::OkStatus();
}

absl::Status ProcessGroup::Change() {
  const size_t place = random_() % workers_.size();
  Process& worker = *workers_[place];
  const bool kill = left_ > killed_;
  const absl::Status ended = End(worker, kill ? SIGKILL : SIGTERM, kill ? -SIGKILL : 0);
  if (!ended.ok()) return ended;
  ++(kill ? killed_ : left_);
  return Join(place);
}

// Once it works: before, SIGTERM would end it as it ends any process.
absl::Status ProcessGroup::End(Process& worker, int signal, int expected) {
  const auto works = worker.WaitForOutput("joined at step");
  if (!works.ok()) return works.status();
  worker.Signal(signal);
  return AwaitEnd("a worker", worker, expected);
}

absl::Status ProcessGroup::Look() {
  for (const auto& worker : workers_) {
    const absl::Status works = CheckWorks("a worker", *worker);
    if (!works.ok()) return works;
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::Leave() {
  for (const auto& worker : workers_) {
    const absl::Status ended = End(*worker, SIGTERM, 0);
    if (!ended.ok()) return ended;
    ++left_;
  }
  return absl::OkStatus();
}

}  // namespace sluice
