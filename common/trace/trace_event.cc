#include "common/trace/trace_event.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
  }
  return quoted + '"';
}

// Microseconds, the unit of Chrome's trace format.
std::string Micros(int64_t nanoseconds) {
  return absl::StrFormat("%d.%03d", nanoseconds / 1000, nanoseconds % 1000);
}

}  // namespace

void AppendSpan(const TraceEvent& span, uint32_t process, std::string* events) {
  absl::StrAppend(events, events->empty() ? "" : ",\n", "{\"name\":\"", span.name,
                  "\",\"ph\":\"X\",\"pid\":", process, ",\"tid\":", span.row,
                  ",\"ts\":", Micros(absl::ToUnixNanos(span.begin)),
                  ",\"dur\":", Micros(absl::ToInt64Nanoseconds(span.duration)));
  if (span.step.has_value()) {
    absl::StrAppend(events, ",\"args\":{\"step\":", span.step->value(), "}");
  }
  *events += "}";
}

void AppendName(absl::string_view what, uint32_t process, int row, absl::string_view name,
                std::string* events) {
  absl::StrAppend(events, events->empty() ? "" : ",\n");
  absl::StrAppendFormat(events, R"({"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}})",
                        what, process, row, Quoted(name));
}

}  // namespace sluice
