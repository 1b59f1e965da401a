#include "server/observe/verdict.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

using Text = absl::optional<std::string>;  // the sentence, if the verdict is true

constexpr absl::Duration kLongWait = absl::Seconds(5);   // for workers or a server
constexpr absl::Duration kLongPause = absl::Minutes(1);  // without a step
constexpr absl::Duration kLongFirstStep = absl::Minutes(5);
constexpr int kWaitInSteps = 4;
constexpr int kPauseInSteps = 20;

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

// Whether all workers have gone, and none of them in good order.
bool AllAreLost(const v1::ServerState& state) {
  return state.phase() == v1::FINISHED && state.worker_counts().left() == 0;
}

Text Finished(const v1::ServerState& state) {
  if (state.phase() != v1::FINISHED || AllAreLost(state)) return absl::nullopt;
  std::string text = absl::StrCat("training has finished at ", StepOf(state), TrainedWords(state));
  const uint32_t evicted = state.worker_counts().evicted();
  if (evicted > 0) absl::StrAppend(&text, "; ", WorkersWords(evicted), " did not come to the end");
  return text;
}

Text Ending(const v1::ServerState& state) {
  if (state.phase() != v1::DRAINING) return absl::nullopt;
  return absl::StrCat("the server was told to end at ", StepOf(state), TrainedWords(state));
}

Text CannotSave(const v1::ServerState& state) {
  if (!state.journal_stopped()) return absl::nullopt;
  return absl::StrCat("pushes are refused at ", StepOf(state),
                      ", because the journal cannot be written; make space on the disk of "
                      "--checkpoint-dir; then it goes on by itself");
}

Text ServerAway(const v1::ServerState& state) {
  if (!state.has_awaited_server()) return absl::nullopt;
  const absl::Duration since = FromProto(state.awaited_server().since());
  if (since < kLongWait) return absl::nullopt;
  return absl::StrCat(StepOf(state), " has waited ", TimeWords(since), " for ", AwaitedWords(state),
                      "; see its log, or start it again with its flags");
}

// Of the workers that the job expects, how many have not joined.
uint32_t NotJoined(const v1::ServerState& state) {
  const uint32_t here = state.worker_counts().connected() + state.worker_counts().left();
  return state.expected_workers() - std::min(state.expected_workers(), here);
}

// In some modes the first workers train before all have joined.
bool MakesSteps(const v1::ServerState& state) {
  return state.worker_counts().connected() > 0 && state.has_since_last_step() &&
         FromProto(state.since_last_step()) < kLongPause;
}

Text Waiting(const v1::ServerState& state) {
  if (state.phase() != v1::WAITING_FOR_WORKERS || MakesSteps(state)) return absl::nullopt;
  const bool none_is_here = state.worker_counts().connected() == 0;
  const std::string begin = state.has_since_initialized()
                                ? absl::StrCat("training is at ", StepOf(state), " and waits for ")
                                : "training waits for ";
  const uint32_t absent = NotJoined(state);
  if (absent > 0) {
    return absl::StrCat(begin, absent, " of ", WorkersWords(state.expected_workers()), " to join; ",
                        none_is_here ? "start them" : "--start-timeout can bound this");
  }
  if (state.has_since_initialized() || none_is_here) {
    return absl::StrCat(begin, "workers to join");
  }
  return absl::StrCat(begin, "the initial parameters, which a worker sends");
}

Text WaitsForWorkers(const v1::ServerState& state) {
  const v1::StepState& step = state.current();
  const absl::Duration waited = FromProto(step.waiting());
  // Before the first step nobody knows how long one takes.
  const absl::Duration patience =
      state.has_mean_step_time()
          ? std::max(kLongWait, kWaitInSteps * FromProto(state.mean_step_time()))
          : kLongPause;
  if (step.missing() == 0 || waited < patience) return absl::nullopt;
  return absl::StrCat(StepOf(state), " has waited ", TimeWords(waited), " for ",
                      AwaitedWords(state),
                      "; see the log there. --max-step-wait bounds such waits");
}

Text HasStalledWorkers(const v1::ServerState& state) {
  const v1::StepState& step = state.current();
  if (step.stalled().empty()) return absl::nullopt;
  std::string text = absl::StrCat(StalledWords(step.stalled(0)), ". ");
  const uint32_t more = std::max(step.stalled_workers(), 1u) - 1;
  if (more > 0) absl::StrAppend(&text, more, more == 1 ? " more is" : " more are", " silent. ");
  return absl::StrCat(text, "Nobody waits for such a worker, but see its log");
}

Text MakesNoSteps(const v1::ServerState& state) {
  if (state.phase() != v1::TRAINING || !state.has_since_initialized()) return absl::nullopt;
  if (!state.has_since_last_step()) {
    const absl::Duration pause = FromProto(state.since_initialized());
    if (pause < kLongFirstStep) return absl::nullopt;
    return absl::StrCat("no step was made in ", TimeWords(pause), " since ", StepOf(state),
                        "; see the workers' logs");
  }
  const absl::Duration pause = FromProto(state.since_last_step());
  if (pause < std::max(kLongPause, kPauseInSteps * FromProto(state.mean_step_time()))) {
    return absl::nullopt;
  }
  return absl::StrCat("there was no step for ", TimeWords(pause), " after ", StepOf(state),
                      "; see the workers' logs");
}

Text Slow(const v1::ServerState& state) {
  for (const auto judge : {WaitsForWorkers, HasStalledWorkers, MakesNoSteps}) {
    if (Text text = judge(state); text.has_value()) return text;
  }
  return absl::nullopt;
}

Text NotLearning(const v1::ServerState& state) {
  return WarningOf(state, {v1::DOES_NOT_LEARN, v1::GRADIENTS_DROPPED});
}

// Those who have gone and in whose place nobody has come, whatever the names.
Text WorkersLost(const v1::ServerState& state) {
  const v1::WorkerCounts& counts = state.worker_counts();
  if (AllAreLost(state)) {
    return absl::StrCat("no worker came to the end, and training has stopped at ", StepOf(state),
                        TrainedWords(state), "; the log says why");
  }
  const uint32_t expected = state.expected_workers();
  const uint32_t size = std::max(counts.most(), expected - std::min(expected, counts.left()));
  const uint32_t absent = size - std::min(size, counts.connected());
  const uint32_t gone = std::min(absent, counts.evicted() + counts.away());
  if (gone > 0) {
    return absl::StrCat(gone, " of ", WorkersWords(size), gone == 1 ? " is" : " are",
                        " lost; the log and sluicectl workers name who has gone. Start as many "
                        "again: they can join while training runs");
  }
  const uint32_t lost = std::min(absent, counts.lost());
  if (lost > 0) {
    return absl::StrCat(lost, " of ", WorkersWords(size), lost == 1 ? " has" : " have",
                        " lost the connection, and may come back within the lease");
  }
  return WarningOf(state, {v1::WORKERS_LOST, v1::WORKERS_LATE, v1::TOO_FEW_WORKERS});
}

std::string Fine(const v1::ServerState& state) {
  std::string text = absl::StrCat("training is at ", StepOf(state));
  const double usual = Seconds(state.mean_step_time());
  if (usual > 0) absl::StrAppend(&text, ", ", NumberWords(1 / usual), " steps/s");
  if (state.has_loss()) absl::StrAppend(&text, ", loss ", NumberWords(state.loss()));
  if (state.phase() == v1::WAITING_FOR_WORKERS) {
    absl::StrAppend(&text, "; ", NotJoined(state), " of ", WorkersWords(state.expected_workers()),
                    " did not join yet");
  }
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
