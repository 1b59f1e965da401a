// Reading the file of a trace in tests.

#ifndef SLUICE_TESTS_TESTING_TRACE_EVENTS_H_
#define SLUICE_TESTS_TESTING_TRACE_EVENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// One span, under the names of its process and row.
struct TracedSpan {
  std::string process;
  std::string row;
  std::string name;
  double begin = 0;  // microseconds
  double end = 0;
  int step = -1;  // if it is about one
};

// All spans of the file, which must be valid JSON with every process and row named, in the order of
// their beginnings.
absl::StatusOr<std::vector<TracedSpan>> ReadTrace(const std::string& path);

// The spans of that process and name, in the order of their beginnings.
std::vector<TracedSpan> SpansOf(const std::vector<TracedSpan>& spans, const std::string& process,
                                const std::string& name);

// The spans that neither lie apart from the others of their row nor within them, as text; empty if
// there are none.
std::string BadlyNested(const std::vector<TracedSpan>& spans);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_TRACE_EVENTS_H_
