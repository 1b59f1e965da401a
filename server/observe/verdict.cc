#include "server/observe/verdict.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

using Text = absl::optional<std::string>;  // the sentence, if the verdict is true

constexpr absl::Duration kLongWait = absl::Seconds(5);   // for workers or a server
constexpr absl::Duration kLongPause = absl::Minutes(1);  // without a step
constexpr int kWaitInSteps = 4;
constexpr int kPauseInSteps = 20;

std::string Workers(uint64_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

std::string StepOf(const v1::ServerState& state) { return absl::StrCat("step ", state.step()); }

// The latest of these warnings that lasts.
Text WarningOf(const v1::ServerState& state, std::initializer_list<v1::WarningKind> kinds) {
  Text text;
  for (const v1::TrainingWarning& warning : state.warnings()) {
    const bool is_one = std::find(kinds.begin(), kinds.end(), warning.kind()) != kinds.end();
    if (is_one && !warning.has_over()) text = warning.text();
  }
  return text;
}

Text Diverged(const v1::ServerState& state) {
  Text text = WarningOf(state, {v1::NOT_FINITE, v1::PARAMETERS_GROW, v1::LOSS_RISES});
  if (!text.has_value() && state.diverged()) {
    text = absl::StrCat("training has diverged, and was ended at ", StepOf(state));
  }
  return text;
}

std::string Duration(const v1::ServerState& state) {
  if (!state.has_since_initialized()) return "";
  const absl::Duration since = FromProto(state.since_initialized());
  const absl::Duration last =
      state.has_since_last_step() ? FromProto(state.since_last_step()) : absl::ZeroDuration();
  return absl::StrCat(", ", TimeWords(since - last), " after it began");
}

// Whether all workers have gone, and none of them in good order.
bool AllAreLost(const v1::ServerState& state) {
  return state.phase() == v1::FINISHED && state.worker_counts().evicted() > 0 &&
         state.worker_counts().left() == 0;
}

Text Finished(const v1::ServerState& state) {
  if (state.phase() != v1::FINISHED || AllAreLost(state)) return absl::nullopt;
  std::string text = absl::StrCat("training has finished at ", StepOf(state), Duration(state));
  for (const auto& [name, value] : MeasuredResults(state)) {
    absl::StrAppendFormat(&text, ", %s %.4g", Shown(name), value);
  }
  const uint32_t evicted = state.worker_counts().evicted();
  if (evicted > 0) absl::StrAppend(&text, "; ", Workers(evicted), " did not come to the end");
  return text;
}

Text Ending(const v1::ServerState& state) {
  if (state.phase() != v1::DRAINING) return absl::nullopt;
  return absl::StrCat("the server goes down at ", StepOf(state), Duration(state));
}

Text CannotSave(const v1::ServerState& state) {
  if (!state.journal_stopped()) return absl::nullopt;
  return absl::StrCat("pushes are refused at ", StepOf(state),
                      ", because the journal cannot be written; make space on the disk of "
                      "--checkpoint-dir, and start the server again");
}

Text ServerAway(const v1::ServerState& state) {
  if (!state.has_awaited_server()) return absl::nullopt;
  const absl::Duration since = FromProto(state.awaited_server().since());
  if (since < kLongWait) return absl::nullopt;
  return absl::StrCat(StepOf(state), " has waited ", TimeWords(since), " for server ",
                      state.awaited_server().index(), " of ", state.servers(),
                      "; see its log, or start it again with its flags");
}

Text Waiting(const v1::ServerState& state) {
  if (state.phase() != v1::WAITING_FOR_WORKERS) return absl::nullopt;
  const uint32_t here = state.worker_counts().connected();
  const uint32_t expected = state.expected_workers();
  const std::string begin = state.has_since_initialized()
                                ? absl::StrCat("training is at ", StepOf(state), " and waits for ")
                                : "training waits for ";
  if (here < expected) {
    return absl::StrCat(begin, expected - here, " of ", Workers(expected),
                        " to join; --start-timeout bounds this");
  }
  if (state.has_since_initialized()) return absl::StrCat(begin, "workers to join");
  return absl::StrCat(begin, "the initial parameters, which a worker sends");
}

std::string AwaitedNames(const v1::StepState& step) {
  std::string names;
  for (const v1::AwaitedWorker& worker : step.awaited()) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Shown(worker.worker()), " (last heard ",
                    TimeWords(FromProto(worker.since_last_seen())), " ago)");
    if (step.awaited_size() > 3) break;  // the first stands for them
  }
  const uint32_t more =
      step.missing() -
      std::min<uint32_t>(step.missing(),
                         step.awaited_size() > 3 ? 1 : static_cast<uint32_t>(step.awaited_size()));
  if (names.empty()) return Workers(step.missing());
  return more > 0 ? absl::StrCat(names, " and ", more, " more") : names;
}

Text Slow(const v1::ServerState& state) {
  const v1::StepState& step = state.current();
  const absl::Duration usual = FromProto(state.mean_step_time());
  const absl::Duration waited = FromProto(step.waiting());
  if (step.missing() > 0 && waited >= std::max(kLongWait, kWaitInSteps * usual)) {
    return absl::StrCat(StepOf(state), " has waited ", TimeWords(waited), " for ",
                        AwaitedNames(step),
                        "; see the log there. --max-step-wait bounds such waits");
  }
  if (step.stalled_size() > 0) {
    const v1::StalledWorker& first = step.stalled(0);
    std::string text =
        absl::StrCat(Shown(first.worker()), " has sent no gradient for ",
                     TimeWords(FromProto(first.since_last_push())),
                     absl::StrFormat("; it usually needs %.2g s. ", Seconds(first.usual())));
    const int more = step.stalled_size() - 1;
    if (more > 0) absl::StrAppend(&text, more, more == 1 ? " more is" : " more are", " silent. ");
    return absl::StrCat(text, "Nobody waits for such a worker, but see its log");
  }
  const absl::Duration pause = FromProto(state.since_last_step());
  if (state.has_since_last_step() && pause >= std::max(kLongPause, kPauseInSteps * usual)) {
    return absl::StrCat("there was no step for ", TimeWords(pause), " after ", StepOf(state),
                        "; see the workers' logs");
  }
  return absl::nullopt;
}

Text NotLearning(const v1::ServerState& state) {
  return WarningOf(state, {v1::DOES_NOT_LEARN, v1::GRADIENTS_DROPPED});
}

Text WorkersLost(const v1::ServerState& state) {
  const v1::WorkerCounts& counts = state.worker_counts();
  if (AllAreLost(state)) {
    return absl::StrCat("every worker was lost, and training has stopped at ", StepOf(state),
                        Duration(state), "; the log says why");
  }
  if (counts.evicted() > 0) {
    return absl::StrCat(Workers(counts.evicted()), counts.evicted() == 1 ? " was" : " were",
                        " lost, and nobody with the name is back; ", counts.connected(),
                        counts.connected() == 1 ? " goes" : " go",
                        " on. The log names who it was; start it again");
  }
  if (counts.lost() > 0) {
    return absl::StrCat(Workers(counts.lost()), counts.lost() == 1 ? " has" : " have",
                        " lost the connection, and may come back within the lease");
  }
  return WarningOf(state, {v1::WORKERS_LOST, v1::WORKERS_LATE, v1::TOO_FEW_WORKERS});
}

std::string Fine(const v1::ServerState& state) {
  std::string text = absl::StrCat("training is at ", StepOf(state));
  const double usual = Seconds(state.mean_step_time());
  if (usual > 0) absl::StrAppendFormat(&text, ", %.3g steps/s", 1 / usual);
  if (state.has_loss()) absl::StrAppendFormat(&text, ", loss %.4g", state.loss());
  return text;
}

}  // namespace

v1::Verdict VerdictOn(const v1::ServerState& state) {
  const std::pair<v1::Verdict::Kind, Text (*)(const v1::ServerState&)> judges[] = {
      {v1::Verdict::DIVERGED, Diverged},
      {v1::Verdict::FINISHED, Finished},
      {v1::Verdict::ENDING, Ending},
      {v1::Verdict::CANNOT_SAVE, CannotSave},
      {v1::Verdict::SERVER_AWAY, ServerAway},
      {v1::Verdict::WAITING, Waiting},
      {v1::Verdict::SLOW, Slow},
      {v1::Verdict::NOT_LEARNING, NotLearning},
      {v1::Verdict::WORKERS_LOST, WorkersLost}};
  v1::Verdict verdict;
  verdict.set_kind(v1::Verdict::FINE);
  for (const auto& [kind, judge] : judges) {
    Text text = judge(state);
    if (!text.has_value()) continue;
    verdict.set_kind(kind);
    verdict.set_text(*std::move(text));
    return verdict;
  }
  verdict.set_text(Fine(state));
  return verdict;
}

}  // namespace sluice
