#include "server/rpc/gather.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/deadline.h"
#include "common/wire/messages.h"
#include "common/wire/settings.h"
#include "common/wire/status.h"
#include "server/rpc/call_wait.h"

namespace sluice {
namespace {

absl::Status BadArgument(const std::string& why) { return MakeError(Reason::kBadArgument, why); }

// Waits for the others at most `request.wait`.
class GatherCall final : public grpc::ServerUnaryReactor,
                         public std::enable_shared_from_this<GatherCall> {
 public:
  GatherCall(grpc::ByteBuffer* response, Gatherings& gatherings)
      : response_(response),
        gatherings_(gatherings),
        wait_([&gatherings](uint64_t id) { return gatherings.Cancel(id); }) {}

  // The call may end on another thread before this returns.
  void Start(const v1::GatherRequest& request, absl::Duration longest) {
    const std::shared_ptr<GatherCall> self = self_ = shared_from_this();
    const uint64_t number = request.number();
    const auto id =
        gatherings_.Add(request, [weak = weak_from_this()](const Gatherings::Given& given) {
          if (const auto call = weak.lock()) call->Answer(*given);
        });
    if (!id.ok()) return Finish(ToGrpcStatus(id.status()));
    if (wait_.Begin(*id)) return Finish(grpc::Status::CANCELLED);
    absl::MutexLock lock(&mu_);
    alarm_.Set(DeadlineAfter(longest), [weak = weak_from_this(), number](bool due) {
      const auto call = weak.lock();
      if (due && call != nullptr) call->EndLate(number);
    });
  }

  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    {
      absl::MutexLock lock(&mu_);
      alarm_.Cancel();
    }
    self_.reset();
  }

 private:
  void Answer(const std::vector<std::string>& given) {
    v1::GatherResponse answer;
    for (const std::string& data : given) answer.add_data(data);
    *response_ = EncodeMessage(answer);
    Finish(grpc::Status::OK);
  }

  void EndLate(uint64_t number) {
    const std::string missing = gatherings_.Missing(number);
    if (!wait_.Cancel()) return;
    Finish(ToGrpcStatus(absl::DeadlineExceededError(absl::StrCat("waits for ", missing))));
  }

  grpc::ByteBuffer* const response_;
  Gatherings& gatherings_;
  CallWait<uint64_t> wait_;
  absl::Mutex mu_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<GatherCall> self_;  // until the call is done
};

// A call that is refused before it begins.
class RefusedGather final : public grpc::ServerUnaryReactor {
 public:
  explicit RefusedGather(const absl::Status& why) { Finish(ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::StatusOr<uint64_t> Gatherings::Add(const v1::GatherRequest& request, Done done) {
  std::vector<Done> complete;
  Given given;
  uint64_t id = 0;
  {
    absl::MutexLock lock(&mu_);
    absl::Status sound = CheckMember(request);
    if (sound.ok()) sound = Begin(request);
    if (!sound.ok()) return sound;
    Exchange& exchange = exchanges_.at(request.number());
    sound = CheckFits(request, exchange);
    if (!sound.ok()) return sound;
    members_[request.rank()] = {request.process_nonce(), request.number()};
    id = ++last_id_;
    given = exchange.given;
    if (given == nullptr) {
      const auto before = exchange.waiting.find(request.rank());
      if (before != exchange.waiting.end()) waiting_.erase(before->second);
      std::string& data = exchange.data[request.rank()];
      exchange.bytes += request.data().size() - data.size();
      data = request.data();
      exchange.waiting[request.rank()] = id;
      waiting_[id] = std::move(done);
    }
    if (given == nullptr && exchange.data.size() == exchange.size) {
      complete = Complete(request.number());
      given = exchange.given;
    }
  }
  if (complete.empty() && given != nullptr) complete.push_back(std::move(done));
  for (const Done& each : complete) each(given);
  return id;
}

// Begins the exchange, unless it is under way.
absl::Status Gatherings::Begin(const v1::GatherRequest& request) {
  const auto member = members_.find(request.rank());
  const auto found = exchanges_.find(request.number());
  if (found != exchanges_.end()) {
    const bool same = member != members_.end() && member->second.nonce == request.process_nonce();
    if (same || found->second.given == nullptr) return absl::OkStatus();
    exchanges_.erase(found);  // of processes that were here before
  }
  // Processes that are gone have left what they began.
  for (auto i = exchanges_.begin(); i != exchanges_.end() && exchanges_.size() >= kMostExchanges;) {
    const bool awaited =
        std::any_of(i->second.waiting.begin(), i->second.waiting.end(),
                    [this](const auto& one) { return waiting_.count(one.second) > 0; });
    i = awaited ? std::next(i) : exchanges_.erase(i);
  }
  if (exchanges_.size() >= kMostExchanges) {
    return BadArgument(absl::StrCat(kMostExchanges, " exchanges are under way, and processes that ",
                                    "make the same calls have two at most"));
  }
  exchanges_[request.number()].size = request.size();
  return absl::OkStatus();
}

// All processes have called for this exchange, so they have the answers of the earlier ones.
std::vector<Gatherings::Done> Gatherings::Complete(uint64_t number) {
  exchanges_.erase(exchanges_.begin(), exchanges_.find(number));
  Exchange& exchange = exchanges_[number];
  auto given = std::make_shared<std::vector<std::string>>();
  for (auto& data : exchange.data) given->push_back(std::move(data.second));
  std::vector<Done> complete;
  for (const auto& one : exchange.waiting) {
    const auto waiting = waiting_.find(one.second);
    if (waiting == waiting_.end()) continue;  // it has been cancelled
    complete.push_back(std::move(waiting->second));
    waiting_.erase(waiting);
  }
  exchange.data.clear();
  exchange.waiting.clear();
  exchange.given = std::move(given);
  return complete;
}

bool Gatherings::Cancel(uint64_t id) {
  absl::MutexLock lock(&mu_);
  return waiting_.erase(id) > 0;
}

std::string Gatherings::Missing(uint64_t number) const {
  constexpr size_t kMostNames = 4;
  absl::MutexLock lock(&mu_);
  const auto found = exchanges_.find(number);
  if (found == exchanges_.end()) return "nobody";
  const Exchange& exchange = found->second;
  std::vector<std::string> missing;
  for (uint32_t rank = 0; rank < exchange.size && missing.size() < kMostNames; ++rank) {
    if (exchange.data.count(rank) > 0) continue;
    const auto member = members_.find(rank);
    const uint64_t at = member == members_.end() ? 0 : member->second.number;
    missing.push_back(at == 0 ? absl::StrCat("rank ", rank)
                              : absl::StrCat("rank ", rank, " (at its exchange ", at, ")"));
  }
  const size_t more = exchange.size - exchange.data.size() - missing.size();
  return absl::StrCat(absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "", " of ", exchange.size);
}

absl::Status Gatherings::CheckMember(const v1::GatherRequest& request) const {
  if (request.number() == 0) return BadArgument("number is 0, expected 1 or more");
  if (request.size() == 0 || request.size() > kMostProcesses || request.rank() >= request.size()) {
    return BadArgument(absl::StrCat("rank is ", request.rank(), " of ", request.size(),
                                    ", expected one below the size, which is 1 to ",
                                    kMostProcesses));
  }
  const auto known = members_.find(request.rank());
  if (known == members_.end()) return absl::OkStatus();  // or this server was started again
  const Member& member = known->second;
  const uint64_t number = request.number();
  if (member.nonce == request.process_nonce()) {
    if (number == member.number || number == member.number + 1) return absl::OkStatus();
    return BadArgument(absl::StrCat("number is ", number, ", and the latest of rank ",
                                    request.rank(), " was ", member.number));
  }
  if (number == 1) return absl::OkStatus();  // it begins, and perhaps all others do
  return MakeError(Reason::kGatherLost,
                   absl::StrCat("another process has exchanged data as rank ", request.rank(),
                                "; let one launch at a time use this server"));
}

absl::Status Gatherings::CheckFits(const v1::GatherRequest& request, const Exchange& exchange) {
  if (exchange.size != request.size()) {
    return BadArgument(
        absl::StrCat("size is ", request.size(), ", and the others' is ", exchange.size));
  }
  const auto own = exchange.data.find(request.rank());
  const uint64_t others = exchange.bytes - (own == exchange.data.end() ? 0 : own->second.size());
  if (others + request.data().size() <= kMostBytes) return absl::OkStatus();
  return BadArgument(absl::StrCat("the data of all processes have ", others + request.data().size(),
                                  " or more bytes, expected at most ", kMostBytes));
}

grpc::ServerUnaryReactor* ServeGather(const v1::GatherRequest& request, grpc::ByteBuffer* response,
                                      Gatherings& gatherings) {
  constexpr absl::Duration kLongest = absl::Hours(1);
  const absl::Duration wait = FromProto(request.wait());
  if (wait < absl::ZeroDuration() || wait > kLongest) {
    return new RefusedGather(BadArgument(
        absl::StrCat("wait is ", absl::FormatDuration(wait), ", expected at most an hour")));
  }
  const auto call = std::make_shared<GatherCall>(response, gatherings);
  call->Start(request, wait);
  return call.get();
}

}  // namespace sluice
