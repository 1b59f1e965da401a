#include "server/state/session_record.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

bool Counts(Disposition disposition) {
  return disposition == Disposition::kAccepted || disposition == Disposition::kApplied;
}

}  // namespace

bool MarkLeftOut(Step step, PushOutcome* outcome) {
  if (!Counts(outcome->first_disposition.value_or(outcome->disposition))) return false;
  if (outcome->first_disposition.has_value()) {
    outcome->first_disposition = Disposition::kSkipped;
  } else {
    outcome->disposition = Disposition::kSkipped;
  }
  outcome->step = step;
  return true;
}

void SessionRecord::LeaveOut(Step step) {
  for (auto& stored : answers) {
    if (stored.second.part_of != step || !MarkLeftOut(step, &stored.second.outcome)) continue;
    --accepted;
    ++skipped;
  }
}

void SessionRecord::Remember(const PushHeader& header, const StoredAnswer& answer, absl::Time now) {
  const PushOutcome& outcome = answer.outcome;
  last_sequence = std::max(last_sequence, header.sequence);
  answers[header.sequence] = answer;
  if (answers.size() > kStoredAnswers) answers.erase(answers.begin());
  last_gradient_step = header.step;
  not_finite = false;
  if (header.loss.has_value()) loss = *header.loss;
  if (header.encodings.has_value()) encodings = *header.encodings;
  if (last_push > absl::InfinitePast()) {
    const absl::Duration interval = now - last_push;
    const bool is_first = push_interval == absl::ZeroDuration();
    push_interval =
        is_first ? interval
                 : push_interval + (std::min(interval, 10 * push_interval) - push_interval) / 10;
  }
  last_push = now;
  if (outcome.disposition == Disposition::kStaleDropped) {
    ++stale;
    return;
  }
  const bool counted = outcome.disposition != Disposition::kSkipped;
  ++(counted ? accepted : skipped);
  if (counted && header.attachments != nullptr) {
    attachments.clear();
    for (const Attachment& attachment : *header.attachments) {
      attachments.emplace_back(attachment.type, attachment.data.size());
    }
  }
  ++clock;
}

void SessionRecord::Uncount(const PushOutcome& outcome) {
  if (outcome.disposition == Disposition::kStaleDropped) {
    --stale;
    return;
  }
  --(outcome.disposition == Disposition::kSkipped ? skipped : accepted);
  if (clock > 0) --clock;  // a change of policy resets clocks
}

std::string SessionRecord::Describe() const {
  return absl::StrCat("\"", Shown(worker), "\" (process ", pid,
                      host.empty() ? "" : absl::StrCat(" on ", Shown(host)), ")");
}

std::string SessionRecord::DescribeFailure() const {
  return absl::StrCat(Describe(), failure.empty() ? " was silent for longer than its lease" : ": ",
                      absl::Utf8SafeCEscape(failure));
}

bool SessionRecord::HasReplaced(ProcessNonce process) const {
  return std::find(replaced.begin(), replaced.end(), process) != replaced.end();
}

SessionRecord SessionRecord::Successor() const {
  SessionRecord successor;
  successor.contributed = contributed;
  successor.inherited = true;
  successor.replaced = replaced;
  if (presence == Presence::kLeft) return successor;
  successor.pushes_before = pushes_in_launch();
  if (last_sequence > Sequence()) successor.replaced.push_back(process_nonce);
  return successor;
}

SessionRecord SessionRecord::Before(Step step) const {
  SessionRecord before = *this;
  before.listener = nullptr;
  if (before.contributed == step) before.contributed.reset();
  const auto first =
      std::find_if(before.answers.begin(), before.answers.end(),
                   [&](const auto& stored) { return stored.second.part_of == step; });
  if (first == before.answers.end()) {
    const bool by_earlier_process = contributed == step && inherited;
    if (by_earlier_process && pushes_before > 0) --before.pushes_before;
    return before;
  }
  before.last_sequence = Sequence(first->first.value() - 1);
  for (auto it = first; it != before.answers.end(); ++it) before.Uncount(it->second.outcome);
  before.answers.erase(first, before.answers.end());
  return before;
}

SessionRecord SessionRecord::OnlyOf(Step step) const {
  SessionRecord only = *this;
  only.listener = nullptr;
  for (auto it = only.answers.begin(); it != only.answers.end();) {
    it = it->second.part_of == step ? std::next(it) : only.answers.erase(it);
  }
  return only;
}

}  // namespace sluice
