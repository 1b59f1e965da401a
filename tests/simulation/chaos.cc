#include "tests/simulation/chaos.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace sluice {
namespace {

constexpr float kBig = 16777216;  // 2^24: next to it a 1 is lost

}  // namespace

Chaos::Chaos(const Scenario& scenario, Dice& dice, World& world)
    : scenario_(scenario), dice_(dice), world_(world) {}

// ---- Processes ----

SimulatedProcess& Chaos::NewProcess(uint32_t index, SessionRole role) {
  processes_.push_back(std::make_unique<SimulatedProcess>());
  JoinRequest& request = processes_.back()->request;
  request.job_id = "job";
  request.role = role;
  request.worker = absl::StrCat(role == SessionRole::kWorker ? "w" : "o", index);
  request.process_nonce = ProcessNonce(++nonces_);
  request.layout = scenario_.layout;
  request.optimizer.options = scenario_.optimizer;
  // Not the order of names. No two names have the same.
  if (scenario_.own_indices) request.index = (index * 5 + 3) % 7 + (dice_.Percent(20) ? 7 : 0);
  return *processes_.back();
}

bool Chaos::Join(SimulatedProcess& process) {
  const absl::optional<Welcome> welcome = world_.Join(process.request);
  if (!welcome.has_value()) return false;
  // What a server that does not know it may have counted must not be repeated.
  if (!welcome->resumed) process.pushes.clear();
  process.sequence = std::max(process.sequence, welcome->last_sequence.value());
  if (!welcome->resumed && dice_.Percent(50)) process.sequence = 0;
  process.welcomes.push_back(*welcome);
  return true;
}

void Chaos::Launch() {
  for (uint32_t i = 0; i < scenario_.options.expected_workers; ++i) Join(NewProcess(i));
  const SimulatedProcess& last = *processes_.back();
  if (scenario_.servers > 1) return OfferOften();
  if (IsAlive(last)) world_.Initialize(last.welcomes.back().session, DrawGradient());
}

bool Chaos::IsAlive(const SimulatedProcess& process) const {
  if (process.welcomes.empty()) return false;
  return world_.oracle().workers().Of(process.welcomes.back().session.value()) != nullptr;
}

std::vector<SimulatedProcess*> Chaos::Alive() {
  std::vector<SimulatedProcess*> alive;
  for (const auto& process : processes_) {
    if (IsAlive(*process)) alive.push_back(process.get());
  }
  return alive;
}

// Mostly one that is alive; else one that was replaced, evicted or has left.
SimulatedProcess& Chaos::Somebody() {
  const std::vector<SimulatedProcess*> alive = Alive();
  if (!alive.empty() && dice_.Percent(92)) return *dice_.Of(alive);
  return *dice_.Of(processes_);
}

SessionId Chaos::SomeSession(const SimulatedProcess& process) {
  if (process.welcomes.empty()) return SessionId(dice_.Below(3) * 1000);
  if (dice_.Percent(95)) return process.welcomes.back().session;
  return dice_.Of(process.welcomes).session;
}

// A process is mostly started again because the one before has died.
void Chaos::JoinAsNew(SimulatedProcess& process) {
  const ModelWorker* const earlier = world_.oracle().workers().Named(process.request.worker);
  const bool dies = earlier != nullptr && earlier->alive && dice_.Percent(75);
  if (dies) world_.Lose(SessionId(earlier->session));
  if (world_.ok()) Join(process);
}

void Chaos::JoinSomebody() {
  const auto index = static_cast<uint32_t>(dice_.Below(scenario_.workers));
  if (processes_.empty() || dice_.Percent(30)) {
    JoinAsNew(NewProcess(index));
  } else if (dice_.Percent(15)) {
    JoinAsNew(NewProcess(static_cast<uint32_t>(dice_.Below(2)), SessionRole::kObserver));
  } else {
    SimulatedProcess& process = Somebody();
    process.silent = false;
    Join(process);
  }
}

// ---- Pushes ----

Values Chaos::DrawGradient() {
  Values gradient(scenario_.layout.size());
  for (float& element : gradient) {
    element = static_cast<float>(dice_.Between(0, 16)) - 8;
    if (scenario_.order_matters) element = dice_.Of({kBig, -kBig, 1.0f, 3.0f, -1.0f, 5.0f});
  }
  if (scenario_.options.guards.max_push_norm.has_value() && dice_.Percent(4)) Enlarge(&gradient);
  return gradient;
}

// The norm is too large, though that of each stripe may not be.
void Chaos::Enlarge(Values* gradient) {
  if (scenario_.servers == 1) {
    (*gradient)[0] = 4096;
    return;
  }
  for (int i = 0; i < 3; ++i) (*gradient)[dice_.Below(gradient->size() / 2)] = 768;
}

uint64_t Chaos::DrawStep() {
  const uint64_t step = world_.oracle().step();
  if (dice_.Percent(80)) return step;
  if (dice_.Percent(10)) return step + dice_.Between(1, 3);
  return step - std::min(step, dice_.Between(1, 4));
}

// The number of the push decides, not the dice: so seeds go on playing what they have played. Null
// if the model has no statistics.
std::shared_ptr<const RunningMeans> Chaos::RunningMeansOf(Sequence sequence) const {
  const std::array<float, 3> decays = {0.25f, 0.5f, 1};
  RunningMeans means;
  for (const LayoutRange& range : scenario_.layout.ranges()) {
    if (range.kind != RangeKind::kStatistic) continue;
    const float decay = decays.at((sequence.value() + range.offset) % decays.size());
    means.push_back({range.offset, range.end(), decay});
  }
  return means.empty() ? nullptr : std::make_shared<const RunningMeans>(std::move(means));
}

PushHeader Chaos::NextHeader(SimulatedProcess& process, uint64_t step) {
  PushHeader header;
  header.session = process.welcomes.back().session;
  header.sequence = Sequence(++process.sequence);
  header.step = Step(step);
  header.incarnation = world_.oracle().incarnation();
  header.samples = static_cast<uint32_t>(dice_.Between(1, 4));
  if (header.sequence.value() % 2 == 1) header.running_means = RunningMeansOf(header.sequence);
  const bool may_change = scenario_.options.schedule.is_constant();
  if (may_change && header.sequence.value() % 3 == 0) {
    SgdOptions changed = scenario_.optimizer;
    changed.learning_rate /= static_cast<double>(1 + header.sequence.value() % 2 * 3);
    header.options = ShareOptions({{0, changed}});
  }
  return header;
}

uint64_t Chaos::Push(SimulatedProcess& process, const PushHeader& header) {
  const uint64_t number = world_.BeginPush(header, DrawGradient());
  process.pushes.push_back(number);
  return number;
}

void Chaos::PushSomething() {
  SimulatedProcess& process = Somebody();
  if (process.welcomes.empty()) return;
  PushHeader header = NextHeader(process, DrawStep());
  header.session = SomeSession(process);
  if (dice_.Percent(3)) header.sequence = Sequence(process.sequence += dice_.Below(3));
  if (dice_.Percent(3)) header.incarnation = Incarnation(header.incarnation.value() ^ 2);
  if (dice_.Percent(2)) header.incarnation = Incarnation(header.incarnation.value() - 1);
  const bool asks_at_once = dice_.Percent(15);
  PullRequest request;
  request.session = header.session;
  if (process.request.role == SessionRole::kWorker) request.after = header.sequence;
  if (asks_at_once && world_.ok()) world_.Pull(request);
  if (!world_.ok()) return;
  const uint64_t number = Push(process, header);
  if (dice_.Percent(65)) Complete(number);
  if (!asks_at_once && world_.ok() && dice_.Percent(40)) world_.Pull(request);
}

// A copy that was delayed, or that a worker sends which did not hear the answer.
void Chaos::Repeat() {
  SimulatedProcess& process = Somebody();
  if (process.pushes.empty()) return;
  const size_t recent = std::min<size_t>(process.pushes.size(), 4);
  uint64_t which = process.pushes[process.pushes.size() - 1 - dice_.Below(recent)];
  if (dice_.Percent(15)) which = dice_.Of(process.pushes);
  const SimulatedPush& first = world_.push(which);
  PushHeader header = first.header;
  if (dice_.Percent(80)) header.session = process.welcomes.back().session;
  const Values gradient = first.gradient;
  const uint64_t number = world_.BeginPush(header, gradient, Reason::kNone, which);
  if (dice_.Percent(65)) Complete(number);
}

absl::optional<uint64_t> Chaos::SomeArriving() {
  std::vector<uint64_t> arriving = world_.Arriving();
  if (arriving.empty()) return absl::nullopt;
  return dice_.Of(arriving);
}

void Chaos::NextChunk(uint64_t number) {
  const SimulatedPush& push = world_.push(number);
  const Values& all = push.gradient;
  const uint64_t size = dice_.Between(1, all.size() - push.arrived);
  // From the end: chunks may come in any order.
  const uint64_t begin = all.size() - push.arrived - size;
  world_.AddChunk(number, begin, Values(all.begin() + begin, all.begin() + begin + size));
}

void Chaos::Complete(uint64_t number) {
  const SimulatedPush& push = world_.push(number);
  if (push.passed && push.arriving) return world_.AbandonPush(number, Abandoned::kAborted);
  while (world_.ok() && push.arriving && push.arrived < push.gradient.size()) {
    NextChunk(number);
  }
  if (world_.ok() && push.arriving) world_.FinishPush(number);
}

void Chaos::Continue() {
  const absl::optional<uint64_t> number = SomeArriving();
  if (!number.has_value()) return PushSomething();
  const SimulatedPush& push = world_.push(*number);
  if (push.passed) return Complete(*number);
  if (dice_.Percent(8)) return SpoilChunk(*number);
  if (scenario_.servers > 1 && dice_.Percent(30)) return FinishSome(*number);
  if (dice_.Percent(50)) return Complete(*number);
  if (push.arrived < push.gradient.size() && dice_.Percent(90)) return NextChunk(*number);
  world_.FinishPush(*number);
}

// The streams to some of the servers end, mostly when all is sent.
void Chaos::FinishSome(uint64_t number) {
  const SimulatedPush& push = world_.push(number);
  const bool all = dice_.Percent(80);
  while (all && world_.ok() && push.arriving && push.arrived < push.gradient.size()) {
    NextChunk(number);
  }
  if (world_.ok() && push.arriving)
    world_.FinishPush(number, dice_.Below(uint64_t{1} << scenario_.servers));
}

void Chaos::SpoilChunk(uint64_t number) {
  const SimulatedPush& push = world_.push(number);
  const uint64_t missing = push.gradient.size() - push.arrived;
  if (missing > 0 && dice_.Percent(70)) {
    Values chunk(missing, std::numeric_limits<float>::quiet_NaN());
    if (scenario_.servers > 1) {  // in one stripe only
      const float not_finite = chunk[0];
      chunk.assign(push.gradient.begin(), push.gradient.begin() + missing);
      chunk[dice_.Below(missing)] = not_finite;
    }
    return world_.AddChunk(number, 0, chunk);
  }
  const bool overlaps = push.arrived > 0 && dice_.Percent(50);
  world_.AddChunk(number, push.gradient.size() - (overlaps ? 1 : 0), {1});
}

void Chaos::Abandon() {
  if (world_.pushes() > 0 && dice_.Percent(50)) {
    const uint64_t recent = std::min<uint64_t>(world_.pushes(), 6);
    const uint64_t push = world_.pushes() - 1 - dice_.Below(recent);
    if (!world_.push(push).past) world_.CancelPush(push);
    return;
  }
  const absl::optional<uint64_t> number = SomeArriving();
  if (!number.has_value()) return;
  world_.AbandonPush(*number, dice_.Of({Abandoned::kAborted, Abandoned::kRejected}));
}

// ---- Pulls ----

void Chaos::Pull() {
  const SimulatedProcess& process = Somebody();
  PullRequest request;
  request.session = SomeSession(process);
  const uint64_t step = world_.oracle().step();
  request.min_step = Step(step - std::min<uint64_t>(step, 1) + dice_.Below(4));
  if (dice_.Percent(40)) request.have_step = Step(step + dice_.Below(2));
  const bool works = process.request.role == SessionRole::kWorker;
  if (works && dice_.Percent(30)) request.after = Sequence(process.sequence + dice_.Below(2));
  world_.Pull(request);
}

void Chaos::CancelPull() {
  if (world_.pulls() == 0) return;
  const uint64_t recent = std::min<uint64_t>(world_.pulls(), 6);
  const uint64_t pull = world_.pulls() - 1 - dice_.Below(recent);
  if (!world_.pull(pull).past) world_.CancelPull(pull);
}

void Chaos::Act() {
  if (processes_.empty()) return JoinSomebody();
  if (scenario_.has_disks() && dice_.Percent(5)) return DisturbServers();
  if (std::exchange(returns_, world_.returns()) != world_.returns()) return ComeBack();
  const uint64_t roll = dice_.Below(100);
  if (roll < 42) return PushSomething();
  if (roll < 60) return Continue();
  if (roll < 62) return Abandon();
  if (roll < 69) return Repeat();
  if (roll < 76) return Pull();
  if (roll < 78) return CancelPull();
  if (roll < 83) return JoinSomebody();
  if (roll < 86) return EndSession();
  if (roll < 95) return Pass();
  if (roll < 96) return Operate();
  if (roll < 98) return Recover();
  if (roll < 99 && dice_.Percent(30)) return JoinInACrowd();
  Odds();
}

}  // namespace sluice
