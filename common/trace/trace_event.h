// The events of a trace as JSON, in Chrome's trace format.

#ifndef SLUICE_COMMON_TRACE_TRACE_EVENT_H_
#define SLUICE_COMMON_TRACE_TRACE_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

// A span of a row.
struct TraceEvent {
  int row = 0;
  const char* name = "";
  absl::Time begin;  // by the server's clock
  absl::Duration duration;
  absl::optional<Step> step;
};

// Both append an event to `events`, which are separated by ",\n".
void AppendSpan(const TraceEvent& span, uint32_t process, std::string* events);
// Names the process ("process_name", with row 0) or one of its rows ("thread_name").
void AppendName(absl::string_view what, uint32_t process, int row, absl::string_view name,
                std::string* events);

}  // namespace sluice

#endif  // SLUICE_COMMON_TRACE_TRACE_EVENT_H_
