#include "server/rpc/all_gather.h"

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
  void Start(const v1::AllGatherRequest& request, absl::Duration longest) {
    const std::shared_ptr<GatherCall> self = self_ = shared_from_this();
    const uint64_t number = request.number();
    const auto id = gatherings_.Add(request, [weak = weak_from_this()](const auto& given) {
      if (const auto call = weak.lock()) call->Answer(given);
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
  void Answer(const absl::StatusOr<Gatherings::Given>& given) {
    if (given.ok()) *response_ = **given;
    Finish(ToGrpcStatus(given.status()));
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

absl::StatusOr<uint64_t> Gatherings::Add(const v1::AllGatherRequest& request, Done done) {
  Due due;
  absl::StatusOr<uint64_t> id = uint64_t{0};
  {
    absl::MutexLock lock(&mu_);
    absl::Status sound = CheckMember(request);
    if (sound.ok()) ForgetEarlier(request, &due);
    if (sound.ok()) sound = Begin(request);
    if (sound.ok()) sound = CheckFits(request, exchanges_.at(request.number()));
    if (sound.ok()) {
      members_[request.rank()] = {request.process_nonce(), request.number()};
      id = ++last_id_;
      Exchange& exchange = exchanges_.at(request.number());
      waiting_[*id] = std::move(done);
      Part& part = exchange.parts[request.rank()];
      Take(part.id, absl::UnavailableError("a later call of this rank has taken its place"), &due);
      part.nonce = request.process_nonce();
      part.id = *id;
      if (exchange.given != nullptr) {
        Take(*id, exchange.given, &due);
      } else {
        exchange.bytes += request.data().size() - part.data.size();
        part.data = request.data();
        if (exchange.parts.size() == exchange.size) Complete(request.number(), &due);
      }
    } else {
      id = sound;
    }
  }
  for (const auto& [call, result] : due) call(result);
  return id;
}

// The first call of another process of that rank: what the one before has given does not count, and
// those who wait for it cannot go on.
void Gatherings::ForgetEarlier(const v1::AllGatherRequest& request, Due* due) {
  const auto member = members_.find(request.rank());
  if (member == members_.end() || member->second.nonce == request.process_nonce()) return;
  const absl::Status lost =
      MakeError(Reason::kGatherLost, absl::StrCat("rank ", request.rank(),
                                                  " was started again, and has no more part in ",
                                                  "this exchange; start all again"));
  for (auto i = exchanges_.begin(); i != exchanges_.end();) {
    const auto part = i->second.parts.find(request.rank());
    const bool earlier =
        part != i->second.parts.end() && part->second.nonce != request.process_nonce();
    if (earlier) {
      for (const auto& one : i->second.parts) Take(one.second.id, lost, due);
    }
    i = earlier ? exchanges_.erase(i) : std::next(i);
  }
}

// Begins the exchange, unless it is under way. Processes that are gone have left what they began.
absl::Status Gatherings::Begin(const v1::AllGatherRequest& request) {
  if (exchanges_.count(request.number()) > 0) return absl::OkStatus();
  for (auto i = exchanges_.begin(); i != exchanges_.end() && exchanges_.size() >= kMostExchanges;) {
    i = IsAwaited(i->second) ? std::next(i) : exchanges_.erase(i);
  }
  if (exchanges_.size() >= kMostExchanges) {
    return BadArgument(absl::StrCat(kMostExchanges, " exchanges are under way, and processes that ",
                                    "make the same calls have two at most"));
  }
  exchanges_[request.number()].size = request.size();
  return absl::OkStatus();
}

bool Gatherings::IsAwaited(const Exchange& exchange) const {
  for (const auto& part : exchange.parts) {
    if (waiting_.count(part.second.id) > 0) return true;
  }
  return false;
}

// The call with that id, if it still waits, gets `result`.
void Gatherings::Take(uint64_t id, const absl::StatusOr<Given>& result, Due* due) {
  auto call = waiting_.extract(id);
  if (!call.empty()) due->emplace_back(std::move(call.mapped()), result);
}

// All processes have called for this exchange, so they have the answers of the earlier ones.
void Gatherings::Complete(uint64_t number, Due* due) {
  exchanges_.erase(exchanges_.begin(), exchanges_.find(number));
  Exchange& exchange = exchanges_.at(number);
  v1::AllGatherResponse answer;
  for (auto& part : exchange.parts) answer.add_data(std::exchange(part.second.data, {}));
  exchange.given = std::make_shared<const grpc::ByteBuffer>(EncodeMessage(answer));
  for (const auto& part : exchange.parts) Take(part.second.id, exchange.given, due);
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
    if (exchange.parts.count(rank) > 0) continue;
    const auto member = members_.find(rank);
    const uint64_t at = member == members_.end() ? 0 : member->second.number;
    missing.push_back(at == 0 ? absl::StrCat("rank ", rank)
                              : absl::StrCat("rank ", rank, " (at its exchange ", at, ")"));
  }
  const size_t more = exchange.size - exchange.parts.size() - missing.size();
  return absl::StrCat(absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "", " of ", exchange.size);
}

absl::Status Gatherings::CheckMember(const v1::AllGatherRequest& request) const {
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

absl::Status Gatherings::CheckFits(const v1::AllGatherRequest& request, const Exchange& exchange) {
  if (exchange.size != request.size()) {
    return BadArgument(
        absl::StrCat("size is ", request.size(), ", and the others' is ", exchange.size));
  }
  if (exchange.given != nullptr) return absl::OkStatus();  // the data does not matter any more
  const auto own = exchange.parts.find(request.rank());
  const uint64_t others =
      exchange.bytes - (own == exchange.parts.end() ? 0 : own->second.data.size());
  if (others + request.data().size() <= kMostBytes) return absl::OkStatus();
  return BadArgument(absl::StrCat("the data of all processes have ", others + request.data().size(),
                                  " or more bytes, expected at most ", kMostBytes));
}

grpc::ServerUnaryReactor* ServeAllGather(const v1::AllGatherRequest& request,
                                         grpc::ByteBuffer* response, Gatherings& gatherings) {
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
