#include "tools/ctl/render/parameters_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

std::string ShapeText(const v1::LayoutRange& range) {
  return absl::StrCat("[", absl::StrJoin(range.shape(), ", "), "]");
}

}  // namespace

std::string ParametersText(const v1::ListParametersResponse& parameters) {
  std::vector<std::vector<std::string>> rows;
  uint64_t elements = 0;
  for (const v1::LayoutRange& range : parameters.parameters()) {
    rows.push_back({Printable(range.name()), ShapeText(range), absl::StrCat(range.length()),
                    BytesText(range.length() * sizeof(float)),
                    absl::AsciiStrToLower(v1::RangeKind_Name(range.kind()))});
    elements += range.length();
  }
  return absl::StrCat(
      TableText({{"NAME"}, {"SHAPE"}, {"ELEMENTS", true}, {"SIZE", true}, {"KIND"}}, rows),
      CountText(static_cast<uint64_t>(parameters.parameters_size()), "tensor"), ", ",
      CountText(elements, "element"), ", ", BytesText(elements * sizeof(float)), "\n");
}

std::string ParameterText(const v1::GetParameterResponse& parameter) {
  const v1::LayoutRange& range = parameter.parameter();
  const v1::TensorStatistics& statistics = parameter.statistics();
  std::string text = absl::StrFormat(
      "%s %s at step %d: %d elements from %d on\n"
      "min %.6g, max %.6g, mean %.6g, standard deviation %.6g, norm %.6g, zeros %.1f %%\n",
      Printable(range.name()), ShapeText(range), parameter.step(), range.length(), range.offset(),
      statistics.min(), statistics.max(), statistics.mean(), statistics.standard_deviation(),
      statistics.l2_norm(), 100 * statistics.zero_share());
  if (parameter.values().empty()) return text;
  return absl::StrCat(text, "values from ", parameter.first(),
                      " on: ", NumbersText(parameter.values()), "\n");
}

}  // namespace sluice
