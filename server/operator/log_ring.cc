#include "server/operator/log_ring.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/utf8.h"

namespace sluice {
namespace {

// At most kMostLineBytes of it. What is no UTF-8, protobuf does not take.
std::string TextOf(absl::string_view message) {
  constexpr size_t kLongestCharacter = 4;  // bytes
  const bool whole = message.size() <= LogRing::kMostLineBytes;
  message = message.substr(0, LogRing::kMostLineBytes);
  for (size_t cut = 0; cut < (whole ? 1 : kLongestCharacter); ++cut) {
    const absl::string_view text = message.substr(0, message.size() - cut);
    if (IsUtf8(text)) return std::string(text);
  }
  return absl::CHexEscape(message).substr(0, LogRing::kMostLineBytes);
}

}  // namespace

void LogRing::send(google::LogSeverity severity, const char*, const char* base_filename, int line,
                   const google::LogMessageTime& time, const char* message, size_t message_len) {
  LoggedLine logged;
  logged.time = absl::FromTimeT(time.timestamp()) + absl::Microseconds(time.usec());
  logged.severity = google::GetLogSeverityName(severity);
  logged.source = absl::StrCat(base_filename, ":", line);
  logged.text = TextOf({message, message_len});
  const absl::MutexLock lock(&mu_);
  logged.number = ++last_;
  lines_.push_back(std::move(logged));
  if (lines_.size() > kMostLines) lines_.pop_front();
}

std::vector<LoggedLine> LogRing::After(uint64_t number, size_t most) const {
  const absl::MutexLock lock(&mu_);
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(most, last_ - number));
  const size_t count = std::min(wanted, lines_.size());
  return {lines_.end() - static_cast<std::ptrdiff_t>(count), lines_.end()};
}

}  // namespace sluice
