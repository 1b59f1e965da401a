#include "tools/bench/staleness/compute_times.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice::bench {
namespace {

constexpr double kPi = 3.14159265358979323846;

// The standard library's distributions differ between implementations, so they are written out. In
// (0, 1].
double Uniform(std::mt19937_64& generator) {
  return static_cast<double>((generator() >> 11) + 1) * 0x1p-53;
}

// By Box and Muller.
double Normal(std::mt19937_64& generator) {
  const double radius = std::sqrt(-2 * std::log(Uniform(generator)));
  return radius * std::cos(2 * kPi * Uniform(generator));
}

// `text` is CHANCE:LONGER.
bool ParseStalls(absl::string_view text, ComputeTimeOptions* options) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  return absl::SimpleAtod(parts.first, &options->chance) && options->chance >= 0 &&
         options->chance <= 1 && absl::SimpleAtod(parts.second, &options->stall) &&
         options->stall >= 0 && std::isfinite(options->stall);
}

absl::Status ParseDistribution(absl::string_view text, ComputeTimeOptions* options) {
  using Kind = ComputeTimeOptions::Kind;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (text == "constant") {
    options->kind = Kind::kConstant;
  } else if (text == "exponential") {
    options->kind = Kind::kExponential;
  } else if (parts.first == "lognormal" && absl::SimpleAtod(parts.second, &options->sigma) &&
             options->sigma > 0 && options->sigma <= 3) {
    options->kind = Kind::kLognormal;
  } else if (parts.first == "stalls" && ParseStalls(parts.second, options)) {
    options->kind = Kind::kStalls;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "--compute is \"", text,
        "\", expected constant, exponential, lognormal:SIGMA with SIGMA above 0 and at "
        "most 3, or stalls:CHANCE:LONGER with CHANCE from 0 to 1"));
  }
  return absl::OkStatus();
}

absl::Status ParseSlow(absl::string_view text, ComputeTimeOptions* options) {
  if (text.empty()) return absl::OkStatus();
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (absl::SimpleAtoi(parts.first, &options->slow_workers) &&
      absl::SimpleAtod(parts.second, &options->slowness) && std::isfinite(options->slowness) &&
      options->slowness > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--slow is \"", text, "\", expected COUNT:FACTOR, for example 2:5"));
}

}  // namespace

absl::StatusOr<ComputeTimeOptions> ParseComputeTimes(absl::string_view distribution,
                                                     absl::string_view slow) {
  ComputeTimeOptions options;
  absl::Status status = ParseDistribution(distribution, &options);
  status.Update(ParseSlow(slow, &options));
  if (!status.ok()) return status;
  return options;
}

ComputeTimes::ComputeTimes(const ComputeTimeOptions& options, uint32_t workers, uint64_t seed)
    : options_(options) {
  for (uint32_t worker = 0; worker < workers; ++worker) {
    std::seed_seq words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), worker};
    generators_.emplace_back(words);
  }
}

double ComputeTimes::Next(uint32_t worker) {
  std::mt19937_64& generator = generators_[worker];
  double time = 1;
  if (options_.kind == ComputeTimeOptions::Kind::kExponential) {
    time = -std::log(Uniform(generator));
  } else if (options_.kind == ComputeTimeOptions::Kind::kLognormal) {
    const double sigma = options_.sigma;
    time = std::exp(sigma * Normal(generator) - sigma * sigma / 2);  // its mean is 1
  } else if (options_.kind == ComputeTimeOptions::Kind::kStalls) {
    if (Uniform(generator) <= options_.chance) time += options_.stall;
  }
  const bool slow = worker + options_.slow_workers >= generators_.size();
  return slow ? time * options_.slowness : time;
}

}  // namespace sluice::bench
