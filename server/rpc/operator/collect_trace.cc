#include "server/rpc/operator/collect_trace.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/trace/trace_collector.h"
#include "common/wire/settings.h"
#include "server/rpc/operator/watch_stream.h"

namespace sluice {
namespace {

constexpr absl::Duration kBetweenMessages = absl::Milliseconds(250);

// What one call has collected. Used by one thread at a time.
class Collection {
 public:
  Collection(Trace& trace, absl::Duration time)
      : collector_(trace), end_(RealClock().Now() + time) {}

  // Fills in what has come. The first message has no spans yet; the caller then knows that the time
  // runs.
  void Fill(v1::CollectTraceResponse* message) {
    TraceCollector::Taken taken = collector_.Take();
    message->Clear();
    message->set_spans(taken.spans);
    message->set_missed(taken.missed);
    bytes_ += taken.events.size();
    full_ = bytes_ > kMostCollectedBytes;
    message->set_full(full_);
    message->set_events(std::move(taken.events));
  }

  bool IsOver() const { return full_ || RealClock().Now() >= end_; }

 private:
  TraceCollector collector_;
  const absl::Time end_;
  uint64_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace

absl::Status CheckCollectTrace(const v1::CollectTraceRequest& request) {
  const absl::Duration time = FromProto(request.time());
  if (time > absl::ZeroDuration() && time <= kLongestCollection) return absl::OkStatus();
  return MakeError(Reason::kBadArgument, absl::StrCat("field time is ", absl::FormatDuration(time),
                                                      ", expected more than 0 and at most ",
                                                      absl::FormatDuration(kLongestCollection)));
}

// A watch that ends itself. The first message is always sent, and gRPC sends nothing before it has
// been given the stream; so `*stream` is set when it is first needed.
grpc::ServerWriteReactor<v1::CollectTraceResponse>* ServeTrace(
    const v1::CollectTraceRequest& request, Trace& trace, OpenWatches& watches) {
  const auto collection = std::make_shared<Collection>(trace, FromProto(request.time()));
  const auto stream = std::make_shared<OpenWatch*>(nullptr);
  auto* const made = new WatchStream<v1::CollectTraceResponse>(
      watches, kBetweenMessages, [collection, stream](v1::CollectTraceResponse* message) {
        collection->Fill(message);
        if (*stream != nullptr && collection->IsOver()) (*stream)->End();
        return true;
      });
  *stream = made;
  return made;
}

}  // namespace sluice
