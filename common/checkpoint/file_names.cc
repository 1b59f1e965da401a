#include "common/checkpoint/file_names.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/numbered_name.h"

namespace sluice {
namespace {

constexpr char kCheckpoint[] = "checkpoint-";
constexpr char kStripe[] = "stripe-";
constexpr char kRows[] = "rows-";
constexpr char kSafeTensors[] = ".safetensors";
constexpr char kSluice[] = ".sluice";

std::string SuffixOf(StripePlace place, absl::string_view extension) {
  return absl::StrCat(PlaceSuffix(place.stripe, place.stripes), extension);
}

}  // namespace

std::string CheckpointName::FileName() const {
  return NumberedName(kCheckpoint, {incarnation, step}, kSafeTensors);
}

absl::optional<CheckpointName> CheckpointName::Parse(absl::string_view file_name) {
  const auto numbers = ParseNumberedName(kCheckpoint, file_name, kSafeTensors);
  if (!numbers.has_value()) return absl::nullopt;
  return CheckpointName{numbers->first, numbers->second};
}

bool operator<(const CheckpointName& a, const CheckpointName& b) {
  return std::tie(a.incarnation, a.step) < std::tie(b.incarnation, b.step);
}

std::string StripeName::FileName() const {
  return NumberedName(kStripe, {incarnation, step}, SuffixOf({stripe, stripes}, kSafeTensors));
}

absl::optional<StripeName> StripeName::Parse(absl::string_view file_name) {
  const auto place = FindPlaceSuffix(absl::StripSuffix(file_name, kSafeTensors));
  if (!place.has_value()) return absl::nullopt;
  StripeName name;
  std::tie(name.stripe, name.stripes) = *place;
  const std::string suffix = SuffixOf({name.stripe, name.stripes}, kSafeTensors);
  const auto numbers = ParseNumberedName(kStripe, file_name, suffix);
  if (!numbers.has_value()) return absl::nullopt;
  name.incarnation = numbers->first;
  name.step = numbers->second;
  return name;
}

std::string RowsName::FileName() const {
  return NumberedName(kRows, {incarnation, step}, SuffixOf(place, kSluice));
}

absl::optional<RowsName> RowsName::Parse(absl::string_view file_name) {
  RowsName name;
  const auto place = FindPlaceSuffix(absl::StripSuffix(file_name, kSluice));
  if (place.has_value()) name.place = {place->first, place->second};
  const auto numbers = ParseNumberedName(kRows, file_name, SuffixOf(name.place, kSluice));
  if (!numbers.has_value()) return absl::nullopt;
  name.incarnation = numbers->first;
  name.step = numbers->second;
  return name;
}

bool operator<(const RowsName& a, const RowsName& b) {
  return std::tie(a.incarnation, a.step, a.place.stripes, a.place.stripe) <
         std::tie(b.incarnation, b.step, b.place.stripes, b.place.stripe);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<size_t>(slash, 1));
}

}  // namespace sluice
