// Reads a trace file.

#ifndef SLUICE_TESTS_TESTING_TRACE_EVENTS_H_
#define SLUICE_TESTS_TESTING_TRACE_EVENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// One span, with the names of its process and row.
struct TracedSpan {
  std::string process;
  std::string row;
  std::string name;
  double begin = 0;  // microseconds
  double end = 0;
  int step = -1;  // −1 if the span has no step
};

// Returns all spans of the file, in the order of their beginnings. Fails if the file is not valid
// JSON, or if a process or a row of a span has no name.
absl::StatusOr<std::vector<TracedSpan>> ReadTrace(const std::string& path);

// The spans of that process and name, in the order of their beginnings.
std::vector<TracedSpan> SpansOf(const std::vector<TracedSpan>& spans, const std::string& process,
                                const std::string& name);

// Two spans of one row must be disjoint, or one must contain the other. Returns a line for each
// span that breaks this rule; empty if there is none.
std::string BadlyNested(const std::vector<TracedSpan>& spans);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_TRACE_EVENTS_H_
