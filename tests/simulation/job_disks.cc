#include "tests/simulation/job_disks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/stripes.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// Element by element.
Values StripeOf(const Values& whole, uint32_t stripe, uint32_t stripes) {
  const uint64_t unit = Stripes(whole.size(), stripes).unit();
  Values part;
  for (uint64_t i = 0; i < whole.size(); ++i) {
    if (i / unit % stripes == stripe) part.push_back(whole[i]);
  }
  return part;
}

}  // namespace

ShardCheckpoint SavedState(const ShardCheckpoint& checkpoint) {
  ShardCheckpoint saved;
  saved.job_id = checkpoint.job_id;
  saved.step = checkpoint.step;
  saved.incarnations = checkpoint.incarnations;
  saved.layout = checkpoint.layout;
  saved.optimizer = checkpoint.optimizer;
  saved.consistency = checkpoint.consistency;
  saved.own_consistency = checkpoint.own_consistency;
  saved.learning_rate = checkpoint.learning_rate;
  saved.changed = checkpoint.changed;
  saved.workers = checkpoint.workers;
  saved.forgot_workers = checkpoint.forgot_workers;
  saved.optimizer_steps = checkpoint.optimizer_steps;
  for (SessionRecord& worker : saved.workers) worker = SavedWorker(worker);
  return saved;
}

JobDisks::JobDisks(const Scenario& scenario) : keep_(1 + scenario.link_seed % 3) {
  for (uint32_t server = 0; server < scenario.servers; ++server) stripes_.emplace_back(server);
  Begin(scenario.options.incarnation, Step());
}

// ---- Incarnations ----

void JobDisks::Begin(Incarnation incarnation, Step begin) {
  begun_[incarnation] = begin;
  reached_ = begin;
  heard_.assign(stripes_.size(), {});
}

uint64_t JobDisks::LostSteps(Step begin) const {
  return reached_.value() - std::min(reached_, begin).value();
}

std::map<Incarnation, Step> JobDisks::BegunSince(const Checkpoint& checkpoint) const {
  return {begun_.upper_bound(checkpoint.key().incarnation), begun_.end()};
}

// ---- Checkpoints ----

std::vector<CheckpointKey> JobDisks::whole() const {
  std::vector<CheckpointKey> keys;
  for (auto it = whole_.rbegin(); it != whole_.rend(); ++it) keys.push_back(it->key());
  return keys;
}

absl::StatusOr<ShardCheckpoint> JobDisks::Load(const Checkpoint& checkpoint) {
  const auto own = of(0).Load(SourceOf(checkpoint.state), *checkpoint.state.layout);
  if (!own.ok()) return own.status();
  ShardCheckpoint state = SavedState(checkpoint.state);
  state.stripes = checkpoint.state.stripes;
  state.parameters = own->parameters;
  state.rows = own->rows;
  state.row_steps = own->row_steps;
  return state;
}

void JobDisks::Take(std::shared_ptr<const ShardCheckpoint> state, const ModelCheckpoint& expected) {
  taken_.push_back({std::move(state), expected, ++takes_, absl::nullopt});
}

void JobDisks::SaveOwn() {
  if (taken_.empty() || taken_.front().own.has_value()) return;
  const ShardCheckpoint& state = *taken_.front().state;
  StripeCheckpoint stripe;
  stripe.parameters = state.parameters;
  stripe.optimizer_steps = state.optimizer_steps;
  stripe.row_slots = state.row_slots;
  stripe.row_steps = state.row_steps;
  taken_.front().own =
      *of(0).Save({state.job_id, state.incarnations.current(), state.step}, *state.layout, stripe);
}

bool JobDisks::WriteState() {
  if (taken_.empty()) return false;
  SaveOwn();
  SavedStripes* const elsewhere = taken_.front().state->elsewhere.get();  // null: none
  if (elsewhere != nullptr && !elsewhere->complete()) return false;
  const Taken taken = std::move(taken_.front());
  taken_.pop_front();
  Checkpoint checkpoint = {SavedState(*taken.state), taken.expected};
  if (elsewhere != nullptr) {
    const auto checksums = elsewhere->Await();
    if (!checksums.ok()) return false;  // the server has stopped to wait
    checkpoint.state.stripes = *checksums;
  }
  checkpoint.state.stripes.insert(checkpoint.state.stripes.begin(), *taken.own);
  for (uint32_t server = 0; server < stripes_.size(); ++server) {
    CheckStripe(taken, server, checkpoint.state.stripes[server]);
  }
  const auto same = [&](const Checkpoint& other) { return other.key() == checkpoint.key(); };
  whole_.erase(std::remove_if(whole_.begin(), whole_.end(), same), whole_.end());
  whole_.push_back(std::move(checkpoint));
  if (whole_.size() > keep_) whole_.pop_front();
  return true;
}

void JobDisks::Finish() {
  while (WriteState()) {
  }
  Forget();
}

void JobDisks::Forget() {
  taken_.clear();
  takes_ = 0;
}

// ---- Journals ----

Step JobDisks::HeardDurable() const {
  if (whole_.empty()) return Step();
  const auto least = std::min_element(
      heard_.begin(), heard_.end(),
      [](const JournalReport& a, const JournalReport& b) { return a.durable < b.durable; });
  return least->durable;
}

absl::Status JobDisks::HeardStopped() const {
  for (const JournalReport& journal : heard_) {
    if (!journal.stopped.ok()) return journal.stopped;
  }
  return absl::OkStatus();
}

// Without a checkpoint, no step can be made again.
Step JobDisks::Durable() const {
  const Step begin = begun_.rbegin()->second;
  if (whole_.empty()) return begin;
  Step least = stripes_[0].journal().durable();
  for (const StripeDisk& disk : stripes_) least = std::min(least, disk.journal().durable());
  return std::max(begin, least);
}

bool JobDisks::AnyWaiting() const {
  return std::any_of(stripes_.begin(), stripes_.end(),
                     [](const StripeDisk& disk) { return disk.journal().waiting() > 0; });
}

bool JobDisks::AnyStopped() const {
  return std::any_of(stripes_.begin(), stripes_.end(), [](const StripeDisk& disk) {
    return disk.journal().full() && disk.journal().waiting() > 0;
  });
}

// ---- Checks ----

void JobDisks::CheckStripe(const Taken& taken, uint32_t server, uint64_t checksum) {
  const StripeDisk::File* const file = of(server).Find(taken.key());
  const std::string which = absl::StrCat("server ", server, "'s file of the checkpoint of step ",
                                         taken.state->step.value());
  if (file == nullptr) return Fail(absl::StrCat(which, " is not there, but the state names it"));
  if (file->checksum != checksum) Fail(absl::StrCat(which, " has another checksum than was told"));
  const Values expected =
      StripeOf(taken.expected.published.back(), server, static_cast<uint32_t>(stripes_.size()));
  const Snapshot& found = *file->stripe.parameters;
  if (found.step != taken.state->step || ValuesOf(found.values.span()) != expected) {
    Fail(absl::StrCat(which, " has step ", found.step.value(), ", or other values"));
  }
}

void JobDisks::CheckReports() {
  const Step begin = begun_.rbegin()->second;
  if (std::max(begin, HeardDurable()) != Durable()) {
    Fail(absl::StrCat("step ", Durable().value(),
                      " is on all disks, and the first server knows of ", HeardDurable().value()));
  }
  for (const Taken& taken : taken_) {
    const bool saved = std::all_of(stripes_.begin() + 1, stripes_.end(), [&](const auto& disk) {
      return disk.SavedBy(taken.key().incarnation) >= taken.number;
    });
    if (taken.state->elsewhere != nullptr && taken.state->elsewhere->complete() != saved) {
      Fail(absl::StrCat("the checkpoint of step ", taken.state->step.value(),
                        saved ? " is saved, and the first server has not heard it"
                              : " counts as saved by all servers, and is not"));
    }
  }
}

void JobDisks::CheckWhole() {
  for (const Checkpoint& checkpoint : whole_) {
    for (uint32_t server = 0; server < stripes_.size(); ++server) {
      if (of(server).Find(checkpoint.key()) != nullptr) continue;
      Fail(absl::StrCat("server ", server, " has no file any more of the checkpoint of step ",
                        checkpoint.state.step.value()));
    }
  }
}

void JobDisks::Fail(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

}  // namespace sluice
