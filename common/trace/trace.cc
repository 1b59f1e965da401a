#include "common/trace/trace.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/random.h"

namespace sluice {
namespace {

constexpr size_t kSpansPerWrite = 1024;

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
  }
  return quoted + '"';
}

// An event that names the process or one of its rows.
std::string Naming(absl::string_view what, uint32_t process, int row, absl::string_view name) {
  return absl::StrFormat(R"({"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}})", what,
                         process, row, Quoted(name));
}

// Microseconds, the unit of Chrome's trace format.
std::string Micros(int64_t nanoseconds) {
  return absl::StrFormat("%d.%03d", nanoseconds / 1000, nanoseconds % 1000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trace>> Trace::Open(const std::string& path, Existing existing,
                                                   const std::string& process, const Clock& clock) {
  auto file = TraceFile::Open(path, existing);
  if (!file.ok()) return file.status();
  return std::make_unique<Trace>(*std::move(file), process, clock);
}

Trace::Trace(TraceFile file, const std::string& process, const Clock& clock)
    : clock_(clock),
      process_(static_cast<uint32_t>(RandomNonce().value() >> 33)),
      names_(Naming("process_name", process_, 0, process)),
      file_(std::move(file)) {}

Trace::~Trace() {
  std::vector<Span> spans;
  std::string names;
  {
    absl::MutexLock lock(&mu_);
    spans.swap(spans_);
    names.swap(names_);
  }
  Write(spans, names);
}

void Trace::Add(absl::string_view row, const char* name, absl::Time begin, absl::Time end,
                absl::optional<Step> step) {
  std::vector<Span> full;
  std::string names;
  {
    absl::MutexLock lock(&mu_);
    // The system's clock may have been set back.
    const absl::Duration duration = std::max(end - begin, absl::ZeroDuration());
    spans_.push_back({RowOf(row), name, begin + offset_.offset(), duration, step});
    if (spans_.size() < kSpansPerWrite) return;
    full.swap(spans_);
    names.swap(names_);
  }
  Write(full, names);
}

void Trace::NoteRoundTrip(absl::Time sent, absl::Time answered, absl::Time received) {
  absl::MutexLock lock(&mu_);
  offset_.Note(sent, answered, received);
}

int Trace::RowOf(absl::string_view name) {
  const auto known = rows_.find(name);
  if (known != rows_.end()) return known->second;
  const int row = static_cast<int>(rows_.size()) + 1;
  rows_.emplace(name, row);
  absl::StrAppend(&names_, names_.empty() ? "" : ",\n", Naming("thread_name", process_, row, name));
  return row;
}

void Trace::Write(const std::vector<Span>& spans, absl::string_view names) {
  if (spans.empty()) return;
  std::string events(names);
  for (const Span& span : spans) {
    absl::StrAppend(&events, events.empty() ? "" : ",\n", "{\"name\":\"", span.name,
                    "\",\"ph\":\"X\",\"pid\":", process_, ",\"tid\":", span.row,
                    ",\"ts\":", Micros(absl::ToUnixNanos(span.begin)),
                    ",\"dur\":", Micros(absl::ToInt64Nanoseconds(span.duration)));
    if (span.step.has_value()) {
      absl::StrAppend(&events, ",\"args\":{\"step\":", span.step->value(), "}");
    }
    events += "}";
  }
  absl::MutexLock lock(&file_mu_);
  if (lost_) return;
  const absl::Status written = file_.Append(events);
  lost_ = !written.ok();
  LOG_IF(WARNING, lost_) << written.message() << "; the trace ends here, and training continues";
}

}  // namespace sluice
