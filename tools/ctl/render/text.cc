#include "tools/ctl/render/text.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/time_text.h"

namespace sluice {
namespace {

std::string ShortTimeText(absl::Duration time) {
  if (time < absl::Milliseconds(1)) {
    return absl::StrCat(absl::ToInt64Microseconds(time), " us");
  }
  if (time < absl::Seconds(1)) {
    return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time));
  }
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(time));
}

void AppendCell(const Column& column, const std::string& cell, size_t width, bool last,
                std::string& line) {
  const std::string padding(width - cell.size(), ' ');
  if (column.right) {
    absl::StrAppend(&line, padding, cell);
  } else {
    absl::StrAppend(&line, cell, last ? "" : padding);
  }
  absl::StrAppend(&line, last ? "\n" : "  ");
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string shown;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\\') {
      shown += "\\\\";
    } else if (absl::ascii_isprint(byte)) {
      shown += letter;
    } else {
      absl::StrAppendFormat(&shown, "\\%03o", byte);
    }
  }
  return shown;
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr double kThousand = 1000;
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / kThousand;
  const char* const* unit = std::begin(kUnits);
  while (value >= kThousand && unit + 1 != std::end(kUnits)) {
    value /= kThousand;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, *unit);
}

std::string TimeText(absl::Duration time) {
  if (time < absl::ZeroDuration()) return absl::StrCat("-", TimeText(-time));
  if (time == absl::InfiniteDuration()) return "for ever";
  if (time < absl::Minutes(1)) return ShortTimeText(time);
  return WholeTimeText(time);
}

std::string NumbersText(absl::Span<const float> numbers) {
  return absl::StrJoin(numbers, " ", [](std::string* text, float number) {
    absl::StrAppendFormat(text, "%.6g", number);
  });
}

std::string CountText(uint64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string RateText(double per_second) {
  constexpr double kWhole = 100;  // from here on without digits behind the point
  if (per_second >= kWhole) return absl::StrFormat("%.0f", per_second);
  return absl::StrFormat("%.*f", per_second >= 1 ? 1 : 2, per_second);
}

std::string ShareText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f %%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string LabelLine(absl::string_view label, absl::string_view text) {
  constexpr int kLabelWidth = 14;
  return absl::StrFormat("%-*s%s\n", kLabelWidth, label, text);
}

std::string TableText(const std::vector<Column>& columns,
                      const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = columns[i].title.size();
    for (const auto& row : rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    AppendCell(columns[i], columns[i].title, widths[i], i + 1 == columns.size(), text);
  }
  for (const auto& row : rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      AppendCell(columns[i], row[i], widths[i], i + 1 == columns.size(), text);
    }
  }
  return text;
}

}  // namespace sluice
