#include "server/rpc/operator/read_logs.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/wire/settings.h"
#include "server/rpc/operator/watch_stream.h"

namespace sluice {
namespace {

constexpr uint32_t kDefaultLines = 100;
constexpr absl::Duration kBetweenReads = absl::Milliseconds(250);

// Fills in the lines that are new since the message before; false if there are none.
class NewLines {
 public:
  NewLines(const LogRing& log, uint32_t lines) : log_(log), first_lines_(lines) {}

  bool operator()(v1::ReadLogsResponse* message) {
    const auto lines = log_.After(last_, first_ ? first_lines_ : LogRing::kMostLines);
    message->Clear();
    for (const LoggedLine& line : lines) Add(line, message);
    if (lines.empty()) return false;
    if (!first_) message->set_missed(lines.front().number - last_ - 1);
    first_ = false;
    last_ = lines.back().number;
    return true;
  }

 private:
  static void Add(const LoggedLine& line, v1::ReadLogsResponse* message) {
    v1::LogLine* const added = message->add_lines();
    *added->mutable_time() = ToProto(line.time);
    added->set_severity(line.severity);
    added->set_source(line.source);
    added->set_text(line.text);
  }

  const LogRing& log_;
  const uint32_t first_lines_;
  bool first_ = true;
  uint64_t last_ = 0;  // the number of the line that was sent last
};

}  // namespace

absl::Status CheckReadLogs(const v1::ReadLogsRequest& request) {
  if (request.lines() <= LogRing::kMostLines) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field lines is ", request.lines(), ", expected at most ",
                                LogRing::kMostLines, ", which the server keeps"));
}

// Without `follow` it is a watch that ends at once, after its first message.
grpc::ServerWriteReactor<v1::ReadLogsResponse>* ServeLogs(const v1::ReadLogsRequest& request,
                                                          const LogRing& log,
                                                          OpenWatches& watches) {
  const uint32_t lines = request.lines() == 0 ? kDefaultLines : request.lines();
  auto* const stream =
      new WatchStream<v1::ReadLogsResponse>(watches, kBetweenReads, NewLines(log, lines));
  // gRPC begins with the call when it has been given the stream, so the stream still exists.
  if (!request.follow()) stream->End();
  return stream;
}

}  // namespace sluice
