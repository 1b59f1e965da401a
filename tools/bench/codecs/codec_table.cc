#include "tools/bench/codecs/codec_table.h"

#include <algorithm>

#include "absl/strings/match.h"
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

// Returns false also if there is nothing to compare it with.
bool Misses(const CodecResult& result, const std::vector<CodecResult>& results) {
  if (result.at_least > 0 && SlowerWay(result) < result.at_least) return true;
  const CodecResult* const blosc = BloscBeside(result, results);
  return result.times_blosc > 0 && blosc != nullptr &&
         MedianOf(result.encodes) < result.times_blosc * MedianOf(blosc->encodes);
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

std::string Goal(const CodecResult& result, const std::vector<CodecResult>& results) {
  const char* const verdict = Misses(result, results) ? "MISSED" : "met";
  if (result.at_least > 0) {
    return absl::StrFormat("  at least %.0f each way: %s", result.at_least, verdict);
  }
  const CodecResult* const blosc = BloscBeside(result, results);
  if (result.times_blosc == 0 || blosc == nullptr) return "";
  return absl::StrFormat("  encode at least %.0f × %s: %.2f, %s", result.times_blosc, blosc->name,
                         MedianOf(result.encodes) / MedianOf(blosc->encodes), verdict);
}

}  // namespace

double PaysBelow(const CodecResult& result) {
  return result.ratio <= 1 ? 0 : kBitsPerByte * SlowerWay(result);
}

const CodecResult* BloscBeside(const CodecResult& result, const std::vector<CodecResult>& results) {
  const CodecResult* best = nullptr;
  for (const CodecResult& other : results) {
    if (!absl::StartsWith(other.name, "blosc:") || other.ratio > result.ratio) continue;
    if (best == nullptr || MedianOf(other.encodes) > MedianOf(best->encodes)) best = &other;
  }
  return best;
}

std::string CodecTable(const std::vector<CodecResult>& results) {
  std::string table =
      "                     |         | encode, GB/s          | decode, GB/s          | relative | "
      "pays below\n"
      "encoding             |   ratio |  median    min–max    |  median    min–max    |    error | "
      "    Gbit/s\n";
  for (const CodecResult& result : results) {
    absl::StrAppendFormat(&table, "%-20s | %7.2f | %s | %s | %8s | %10s%s\n", result.name,
                          result.ratio, Speed(result.encodes), Speed(result.decodes), Error(result),
                          Pays(result), Goal(result, results));
  }
  return table;
}

uint32_t CountMissed(const std::vector<CodecResult>& results) {
  return static_cast<uint32_t>(
      std::count_if(results.begin(), results.end(),
                    [&results](const CodecResult& result) { return Misses(result, results); }));
}

}  // namespace sluice::bench
