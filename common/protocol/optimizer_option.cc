#include "common/protocol/optimizer_option.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace sluice {

double OptionRef::value() const {
  return std::visit([](const auto* value) { return static_cast<double>(*value); }, field);
}

void OptionRef::set(double value) const {
  if (auto* const number = std::get_if<double*>(&field)) {
    **number = value;
  } else if (auto* const on = std::get_if<bool*>(&field)) {
    **on = value != 0;
  } else {
    const bool fits = value >= 0 && value <= std::numeric_limits<uint32_t>::max();
    *std::get<uint32_t*>(field) = fits ? static_cast<uint32_t>(value) : 0;
  }
}

bool IsIn(OptionDomain domain, double value) {
  if (!std::isfinite(value)) return false;
  switch (domain) {
    case OptionDomain::kNotNegative:
      return value >= 0;
    case OptionDomain::kPositive:
      return static_cast<float>(value) > 0;
    case OptionDomain::kBelowOne:
      return value >= 0 && value < 1;
    case OptionDomain::kUpToOne:
      return value >= 0 && value <= 1;
    case OptionDomain::kRate:
      return value > 0 && value <= 1;
    case OptionDomain::kLearningRate:
      return value >= 0 && value <= kLargestLearningRate;
    case OptionDomain::kCount:
      return value >= 1;
    case OptionDomain::kFinite:
    case OptionDomain::kSwitch:
      break;
  }
  return true;
}

std::string Expected(OptionDomain domain) {
  switch (domain) {
    case OptionDomain::kNotNegative:
      return "a finite number that is not negative";
    case OptionDomain::kPositive:
      return "a finite number above 0 that float32 can hold";
    case OptionDomain::kBelowOne:
      return "at least 0, less than 1";
    case OptionDomain::kUpToOne:
      return "at least 0, at most 1";
    case OptionDomain::kRate:
      return "more than 0, at most 1";
    case OptionDomain::kLearningRate:
      return "a finite number, at least 0, at most 1000000";
    case OptionDomain::kCount:
      return "at least 1";
    case OptionDomain::kFinite:
    case OptionDomain::kSwitch:
      break;
  }
  return "a finite number";
}

}  // namespace sluice
