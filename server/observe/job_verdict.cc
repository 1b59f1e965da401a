#include "server/observe/job_verdict.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/observe/readings.h"
#include "server/observe/server_state.h"

namespace sluice {
namespace {

constexpr size_t kMostModels = 4;  // that are named in a sentence

struct Judged {
  std::string name;
  const v1::ServerState* state;
};

bool WasJoined(const v1::ServerState& state) {
  const v1::WorkerCounts& workers = state.worker_counts();
  return state.has_since_initialized() || workers.connected() + workers.lost() + workers.evicted() +
                                                  workers.left() + workers.away() >
                                              0;
}

bool HasFinished(const Judged& model) {
  return model.state->verdict().kind() == v1::Verdict::FINISHED;
}

bool HasEnded(const Judged& model) {
  return HasFinished(model) || model.state->verdict().kind() == v1::Verdict::ENDING;
}

std::vector<Judged> Without(bool (*is)(const Judged&), const std::vector<Judged>& models) {
  std::vector<Judged> others;
  std::copy_if(models.begin(), models.end(), std::back_inserter(others),
               [is](const Judged& model) { return !is(model); });
  return others;
}

// "critic is at step 12, loss 0.47".
std::string WhereItIs(const Judged& model) {
  std::string text = absl::StrCat(model.name.empty() ? "the one without a name" : model.name,
                                  " is at step ", model.state->step());
  if (model.state->has_loss()) absl::StrAppend(&text, ", loss ", NumberWords(model.state->loss()));
  return text;
}

std::string ModelsWords(const std::vector<Judged>& models, const char* what) {
  std::vector<std::string> texts;
  for (const Judged& model : models) {
    if (texts.size() == kMostModels) break;
    texts.push_back(WhereItIs(model));
  }
  if (models.size() > texts.size()) {
    texts.push_back(absl::StrCat(models.size() - texts.size(), " more"));
  }
  return absl::StrCat(models.size(), " models ", what, ": ", absl::StrJoin(texts, "; "));
}

v1::Verdict VerdictOf(const Judged& model) {
  v1::Verdict verdict = model.state->verdict();
  if (!model.name.empty()) {
    verdict.set_text(absl::StrCat("model ", model.name, ": ", verdict.text()));
  }
  return verdict;
}

v1::Verdict All(const std::vector<Judged>& models, v1::Verdict::Kind kind, const char* what) {
  if (models.size() == 1) return VerdictOf(models.front());
  v1::Verdict verdict;
  verdict.set_kind(kind);
  verdict.set_text(ModelsWords(models, what));
  return verdict;
}

}  // namespace

v1::Verdict VerdictOnJob(const v1::ServerState& unnamed, const std::vector<NamedState>& named) {
  std::vector<Judged> models;
  for (const NamedState& model : named) {
    if (WasJoined(model.state)) models.push_back({model.name, &model.state});
  }
  if (models.empty()) return unnamed.verdict();
  if (WasJoined(unnamed)) models.insert(models.begin(), Judged{"", &unnamed});
  std::vector<Judged> going = Without(HasEnded, models);
  if (going.empty()) going = Without(HasFinished, models);
  if (going.empty()) return All(models, v1::Verdict::FINISHED, "have finished");
  // The kinds are in the order of their gravity.
  const Judged gravest =
      *std::min_element(going.begin(), going.end(), [](const Judged& a, const Judged& b) {
        return a.state->verdict().kind() < b.state->verdict().kind();
      });
  const bool all_are_fine = gravest.state->verdict().kind() == v1::Verdict::FINE;
  return all_are_fine ? All(going, v1::Verdict::FINE, "train") : VerdictOf(gravest);
}

void JudgeJob(const NamedShards& named, v1::ServerState* state) {
  if (named == nullptr) return;
  std::vector<NamedState> states;
  for (const NamedShard& model : named()) {
    states.push_back({model.name, ToProto(model.shard->Describe())});
  }
  *state->mutable_verdict() = VerdictOnJob(*state, states);
}

}  // namespace sluice
