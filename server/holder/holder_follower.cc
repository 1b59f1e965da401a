#include "server/holder/holder_follower.h"

#include <atomic>
#include <iterator>
#include <limits>
#include <utility>

namespace sluice {
namespace {

// Takes out what the session of `last` has under this or a lower name.
template <typename Map>
std::vector<typename Map::mapped_type> TakeUpTo(const typename Map::key_type& last, Map& map) {
  typename Map::key_type first;
  first.session = last.session;
  const auto begin = map.lower_bound(first);
  const auto end = map.upper_bound(last);
  std::vector<typename Map::mapped_type> taken;
  for (auto it = begin; it != end; ++it) taken.push_back(std::move(it->second));
  map.erase(begin, end);
  return taken;
}

PushName LastPushOf(SessionId session) {
  return {session, Sequence(std::numeric_limits<uint64_t>::max()),
          std::numeric_limits<uint32_t>::max()};
}

PullName LastPullOf(SessionId session) { return {session, std::numeric_limits<uint64_t>::max()}; }

std::unique_ptr<Executor> OrInline(std::unique_ptr<Executor> executor) {
  return executor == nullptr ? std::make_unique<InlineExecutor>() : std::move(executor);
}

}  // namespace

HolderFollower::HolderFollower(StripePlace place, SnapshotMemory memory, Parallel& parallel,
                               ReportListener report, StripeStorage* storage, Tasks tasks,
                               TableMemory table_memory)
    : place_(place),
      report_(std::move(report)),
      parallel_(parallel),
      storage_(storage),
      holder_(memory, parallel, std::move(table_memory)),
      arithmetic_(OrInline(std::move(tasks.arithmetic))),
      files_(OrInline(std::move(tasks.files))) {}

void HolderFollower::Drain() {
  arithmetic_->Drain();
  files_->Drain();
  journal_ = nullptr;
}

void HolderFollower::Execute(const HolderCommand& command) {
  std::visit([this](const auto& one) { Do(one); }, command);
}

void HolderFollower::Do(const OpenModel& command) {
  absl::MutexLock lock(&mu_);
  holder_.Open(command.layout, command.optimizer, Stripes(command.layout->size(), place_.stripes),
               place_.stripe);
  model_ = holder_.executor();
  whole_ = command.layout;
}

// ---- Pushes ----

void HolderFollower::Do(const OpenSession& command) {
  absl::MutexLock lock(&mu_);
  told_.Open(command.session);
  streams_.Open(command.session);
  pulls_.Open(command.session);
}

PushId HolderFollower::BeginPush(const PushHeader& header, uint32_t attempt, StreamCallback start,
                                 std::function<void()> cancel) {
  const PushName name = {header.session, header.sequence, attempt};
  WaitingStream stream = {header, std::move(start), std::move(cancel)};
  stream.header.attempt = attempt;
  absl::StatusOr<std::unique_ptr<PendingPush>> push;
  {
    absl::MutexLock lock(&mu_);
    const auto admitted = admitted_.extract(name);
    const absl::Status never = told_.WhyNever(name);
    if (!admitted.empty()) {
      push = Start(admitted.mapped(), stream);
    } else if (!never.ok()) {
      push = never;
    } else {
      const auto id = streams_.Add(name, stream, told_.IsOpen(name.session));
      if (id.ok()) return *id;
      push = id.status();
    }
  }
  stream.start(std::move(push));
  return PushId();
}

bool HolderFollower::CancelPush(PushId id) {
  absl::optional<WaitingStream> stream;  // freed without the mutex
  absl::MutexLock lock(&mu_);
  stream = streams_.Take(id);
  return stream.has_value();
}

std::vector<HolderFollower::StreamCallback> HolderFollower::GoOnTo(const PushName& name) {
  std::vector<StreamCallback> passed;
  told_.GoOnTo(name);
  for (WaitingStream& stream : streams_.TakeUpTo(name)) passed.push_back(std::move(stream.start));
  return passed;
}

void HolderFollower::Do(const AdmitPush& command) {
  absl::Status why;
  std::vector<StreamCallback> passed;
  StreamCallback start;
  std::unique_ptr<PendingPush> push;
  {
    absl::MutexLock lock(&mu_);
    auto stream = streams_.Take(command.name);
    passed = GoOnTo(command.name);
    why = told_.WhyNever(command.name);
    if (!stream.has_value()) {
      admitted_.emplace(command.name, command);
    } else {
      start = std::move(stream->start);
      push = Start(command, *stream);
    }
  }
  for (const StreamCallback& one : passed) one(why);
  if (start) start(std::move(push));
}

std::unique_ptr<PendingPush> HolderFollower::Start(const AdmitPush& admitted,
                                                   WaitingStream& stream) {
  arriving_.emplace(admitted.push, Arrival{admitted, std::move(stream.cancel)});
  return std::make_unique<PendingPush>(
      admitted.push, stream.header, holder_.layout(), std::make_shared<std::atomic<uint64_t>>(0),
      admitted.begins_sum ? holder_.LendNext(admitted.push) : nullptr);
}

absl::Status HolderFollower::EndPush(std::unique_ptr<PendingPush> push, const absl::Status& fault) {
  const PushHeader& header = push->header();
  const PushName name = {header.session, header.sequence, header.attempt};
  HaveReport have = {push->id(), fault, absl::nullopt, push->bytes()};
  if (have.refused.ok()) have.refused = CheckPart(*push);
  push->Seal();
  if (have.refused.ok() && MeasuresNorm(push->id())) have.norm = push->ParameterNorm();
  {
    absl::MutexLock lock(&mu_);
    if (arriving_.erase(push->id()) == 0) return told_.WhyNever(name);
    if (have.refused.ok()) holder_.Keep(std::move(push));
  }
  push = nullptr;  // if it is refused, its memory is free before others are told
  report_(have);
  return have.refused;
}

absl::Status HolderFollower::CheckPart(const PendingPush& push) const {
  const absl::Status complete = push.CheckComplete();
  if (!complete.ok() || push.rows().rows() == 0) return complete;
  return tables()->CheckFits(push.rows());
}

bool HolderFollower::MeasuresNorm(PushId push) const {
  absl::MutexLock lock(&mu_);
  const auto arriving = arriving_.find(push);
  return arriving != arriving_.end() && arriving->second.admitted.measures_norm;
}

void HolderFollower::Do(const DropPush& command) {
  absl::Status why;
  std::vector<StreamCallback> passed;
  std::unique_ptr<PendingPush> dropped;     // freed without the mutex
  decltype(arriving_)::node_type arriving;  // likewise
  {
    absl::MutexLock lock(&mu_);
    admitted_.erase(command.name);
    arriving = arriving_.extract(command.push);
    dropped = holder_.Drop(command.push);
    passed = GoOnTo(command.name);
    why = told_.WhyNever(command.name);
  }
  dropped = nullptr;
  for (const StreamCallback& one : passed) one(why);
  if (!arriving.empty()) Cancel(arriving.mapped());
}

std::unique_ptr<PendingPush> HolderFollower::Take(PushId push) {
  absl::MutexLock lock(&mu_);
  return holder_.Take(push);
}

void HolderFollower::Do(const EndJob& command) {
  absl::MutexLock lock(&mu_);
  exit_code_ = command.exit_code;
}

absl::optional<int> HolderFollower::exit_code() const {
  absl::MutexLock lock(&mu_);
  return exit_code_;
}

HeldRows HolderFollower::rows() const {
  absl::MutexLock lock(&mu_);
  if (model_ == nullptr) return {};
  return {holder_.layout(), holder_.latest(), model_->row_slots(), place_};
}

std::shared_ptr<const RowTables> HolderFollower::tables() const {
  absl::MutexLock lock(&mu_);
  return holder_.tables();
}

std::shared_ptr<const Layout> HolderFollower::layout() const {
  absl::MutexLock lock(&mu_);
  return holder_.layout();
}

std::shared_ptr<const Snapshot> HolderFollower::latest() const {
  absl::MutexLock lock(&mu_);
  return holder_.latest();
}

std::shared_ptr<const Snapshot> HolderFollower::newest(uint64_t end) const {
  absl::MutexLock lock(&mu_);
  return holder_.newest(end);
}

// ---- Pulls ----

PullId HolderFollower::Pull(const PullName& name, PullCallback done) {
  absl::StatusOr<PullResult> result;
  {
    absl::MutexLock lock(&mu_);
    const auto released = released_.extract(name);
    const absl::Status never = told_.WhyNever(name);
    if (!released.empty()) {
      result = std::move(released.mapped());
    } else if (!never.ok()) {
      result = never;
    } else {
      const auto id = pulls_.Add(name, done, told_.IsOpen(name.session));
      if (id.ok()) return *id;
      result = id.status();
    }
  }
  done(result);
  return PullId();
}

bool HolderFollower::CancelPull(PullId id) {
  absl::optional<PullCallback> done;  // freed without the mutex
  absl::MutexLock lock(&mu_);
  done = pulls_.Take(id);
  return done.has_value();
}

void HolderFollower::Do(const DropPull& command) {
  absl::Status why;
  std::vector<PullCallback> pulls;
  std::vector<PullResult> released;  // freed without the mutex
  {
    absl::MutexLock lock(&mu_);
    told_.Drop(command.pull);
    why = told_.WhyNever(command.pull);
    pulls = pulls_.TakeUpTo(command.pull);
    released = TakeUpTo(command.pull, released_);
  }
  for (const PullCallback& done : pulls) done(why);
}

void HolderFollower::Do(const ReleasePull& command) {
  PullCallback done;
  PullResult result;
  {
    absl::MutexLock lock(&mu_);
    result = holder_.Release(command.header);
    auto pull = pulls_.Take(command.pull);
    if (!pull.has_value()) {
      released_.emplace(command.pull, std::move(result));
      return;
    }
    done = *std::move(pull);
  }
  done(result);
}

// ---- The end of what waits ----

void HolderFollower::EndEarlier(SessionId base) {
  std::vector<EarlyStreams::Ended> streams;
  std::vector<EarlyPulls::Ended> pulls;
  {
    absl::MutexLock lock(&mu_);
    streams = streams_.TakeEarlier(base);
    pulls = pulls_.TakeEarlier(base);
  }
  End(streams, pulls);
}

void HolderFollower::EndUnknown() {
  std::vector<EarlyStreams::Ended> streams;
  std::vector<EarlyPulls::Ended> pulls;
  {
    absl::MutexLock lock(&mu_);
    streams = streams_.TakeUnknown();
    pulls = pulls_.TakeUnknown();
  }
  End(streams, pulls);
}

void HolderFollower::End(const std::vector<EarlyStreams::Ended>& streams,
                         const std::vector<EarlyPulls::Ended>& pulls) {
  for (const auto& stream : streams) stream.call.start(stream.why);
  for (const auto& pull : pulls) pull.call(pull.why);
}

std::vector<HolderFollower::Arrival> HolderFollower::StopArrivals(SessionId session) {
  std::vector<Arrival> stopped;
  for (auto it = arriving_.begin(); it != arriving_.end();) {
    const auto next = std::next(it);
    if (it->second.admitted.name.session == session) {
      stopped.push_back(std::move(arriving_.extract(it).mapped()));
    }
    it = next;
  }
  return stopped;
}

void HolderFollower::Do(const EndSession& command) {
  absl::Status why;
  std::vector<WaitingStream> streams;
  std::vector<PullCallback> pulls;
  std::vector<Arrival> arrivals;
  std::vector<PullResult> released;                   // freed without the mutex
  std::vector<std::unique_ptr<PendingPush>> dropped;  // likewise
  {
    absl::MutexLock lock(&mu_);
    arrivals = StopArrivals(command.session);
    dropped = holder_.TakeSession(command.session, command.keep);
    streams = streams_.TakeUpTo(LastPushOf(command.session));
    TakeUpTo(LastPushOf(command.session), admitted_);
    pulls = pulls_.TakeUpTo(LastPullOf(command.session));
    released = TakeUpTo(LastPullOf(command.session), released_);
    told_.End(command.session);
    why = told_.WhyNever(LastPullOf(command.session));
  }
  for (const WaitingStream& stream : streams) stream.start(why);
  for (const PullCallback& done : pulls) done(why);
  for (const Arrival& one : arrivals) Cancel(one);
}

}  // namespace sluice
