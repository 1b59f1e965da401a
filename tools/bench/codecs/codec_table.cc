#include "tools/bench/codecs/codec_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/bench/harness/cell.h"

namespace sluice::bench {
namespace {

constexpr double kBitsPerByte = 8;

double MedianOf(const std::vector<double>& values) { return SpreadOf(values).median; }

double SlowerWay(const CodecResult& result) {
  return std::min(MedianOf(result.encodes), MedianOf(result.decodes));
}

std::string Speed(const std::vector<double>& speeds) {
  const Spread spread = SpreadOf(speeds);
  return absl::StrFormat("%7.2f %6.2f–%6.2f", spread.median, spread.min, spread.max);
}

std::string Pays(const CodecResult& result) {
  const double below = PaysBelow(result);
  return below == 0 ? "never" : absl::StrFormat("%.1f", below);
}

std::string Error(const CodecResult& result) {
  return result.error == 0 ? "0" : absl::StrFormat("%.1e", result.error);
}

}  // namespace

double PaysBelow(const CodecResult& result) {
  return result.ratio <= 1 ? 0 : kBitsPerByte * SlowerWay(result);
}

std::string CodecTable(const std::vector<CodecResult>& results) {
  std::string table =
      "                     |         | encode, GB/s          | decode, GB/s          | relative | "
      "pays below\n"
      "encoding             |   ratio |  median    min–max    |  median    min–max    |    error | "
      "    Gbit/s\n";
  for (const CodecResult& result : results) {
    absl::StrAppendFormat(&table, "%-20s | %7.2f | %s | %s | %8s | %10s\n", result.name,
                          result.ratio, Speed(result.encodes), Speed(result.decodes), Error(result),
                          Pays(result));
  }
  return table;
}

}  // namespace sluice::bench
