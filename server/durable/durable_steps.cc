#include "server/durable/durable_steps.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/durable/format/checked_line.h"

namespace sluice {

Step DurableSteps::ReadKept() const {
  const auto text = ReadCheckedLine(files_, path_);
  uint64_t step = 0;
  return text.has_value() && absl::SimpleAtoi(*text, &step) ? Step(step) : Step();
}

// The file is not synced. It only has to survive the process, and an older step in it is true too.
void DurableSteps::WriteKept(Step step) {
  const std::string unfinished = absl::StrCat(path_, ".new");
  auto file = files_.Create(unfinished);
  absl::Status written = file.status();
  if (file.ok()) written = (*file)->Append(CheckedLine(absl::StrCat(step.value())));
  if (written.ok()) written = files_.Rename(unfinished, path_);
  LOG_IF_EVERY_N(WARNING, !written.ok(), 1000) << written.message();
}

void DurableSteps::Listen(std::function<void(Step)> durable,
                          std::function<void(const absl::Status&)> journal_error) {
  durable_ = std::move(durable);
  journal_error_ = std::move(journal_error);
}

void DurableSteps::SetBase() {
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(has_base_, true)) return;
  }
  Tell();
}

bool DurableSteps::has_base() const {
  absl::MutexLock lock(&mu_);
  return has_base_;
}

void DurableSteps::NoteDurable(uint32_t server, Step step) {
  {
    absl::MutexLock lock(&mu_);
    const Step before = OnAllDisks();
    journals_[server].durable = std::max(journals_[server].durable, step);
    if (OnAllDisks() == before) return;
  }
  Tell();
}

void DurableSteps::Tell() {
  Step durable;
  {
    absl::MutexLock lock(&mu_);
    durable = OnAllDisks();
    if (!has_base_ || durable == Step()) return;
    WriteKept(durable);
  }
  durable_(durable);
}

void DurableSteps::NoteStopped(uint32_t server, const absl::Status& why) {
  absl::MutexLock tell_lock(&tell_mu_);  // the listener hears of the changes in their order
  absl::Status before;
  absl::Status now;
  {
    absl::MutexLock lock(&mu_);
    before = FirstStopped();
    journals_[server].stopped = why;
    now = FirstStopped();
  }
  if (before != now) journal_error_(now);
}

Step DurableSteps::OnAllDisks() const {
  return std::min_element(journals_.begin(), journals_.end(),
                          [](const Journal& a, const Journal& b) { return a.durable < b.durable; })
      ->durable;
}

absl::Status DurableSteps::FirstStopped() const {
  const auto first = std::find_if(journals_.begin(), journals_.end(),
                                  [](const Journal& one) { return !one.stopped.ok(); });
  return first == journals_.end() ? absl::OkStatus() : first->stopped;
}

}  // namespace sluice
