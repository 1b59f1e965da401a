// Words and numbers as an operator reads them in a terminal.

#ifndef SLUICE_TOOLS_CTL_RENDER_TEXT_H_
#define SLUICE_TOOLS_CTL_RENDER_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace sluice {

// Makes a text from elsewhere safe to show: each byte that is not printable ASCII becomes an octal
// escape, and a backslash becomes two. So no name can move the cursor or hide a line. Printable
// ASCII without backslashes stays as it is.
std::string Printable(absl::string_view text);

// "81.9 MB"; MB is 10^6 bytes.
std::string BytesText(uint64_t bytes);

// Rounded for people: "800 us", "42.5 ms", "15.5 s", "3 min 5 s", "2 h 5 min", "3 d 4 h".
std::string TimeText(absl::Duration time);

// "0.5 -1.25e-07 3".
std::string NumbersText(absl::Span<const float> numbers);

// "1 worker", "12 workers".
std::string CountText(uint64_t count, absl::string_view noun);

// A number per second: "16.6", "0.02", "1250".
std::string RateText(double per_second);

// The part of a whole in percent: "12.5 %"; "-" if the whole is 0.
std::string ShareText(uint64_t part, uint64_t whole);

// A line of a screen with its line end: "optimizer     sgd".
std::string LabelLine(absl::string_view label, absl::string_view text);

struct Column {
  std::string title;
  bool right = false;  // numbers
};

// Lines with aligned columns, each with its line end. Every row has one cell for each column.
// Cells are shown as they are, so make them Printable().
std::string TableText(const std::vector<Column>& columns,
                      const std::vector<std::vector<std::string>>& rows);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_TEXT_H_
