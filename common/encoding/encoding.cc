#include "common/encoding/encoding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

constexpr int kMostLevel = 19;
constexpr size_t kLongestName = 64;

struct TransformName {
  ValueTransform transform;
  absl::string_view name;
};

constexpr TransformName kNames[] = {
    {ValueTransform::kFloat32, "float32"},   {ValueTransform::kFloat16, "float16"},
    {ValueTransform::kBfloat16, "bfloat16"}, {ValueTransform::kInt8, "int8"},
    {ValueTransform::kSign, "sign"},         {ValueTransform::kTopK, "top-k"},
    {ValueTransform::kRandomK, "random-k"},  {ValueTransform::kLowRank, "low-rank"},
};

struct LayoutName {
  ByteLayout layout;
  absl::string_view name;
};

constexpr LayoutName kLayouts[] = {
    {ByteLayout::kPlanes, "planes"},
    {ByteLayout::kNonzeroPlanes, "nonzero"},
};

using Words = std::vector<absl::string_view>;

absl::Status Bad(absl::string_view text, absl::string_view problem) {
  return MakeError(Reason::kBadArgument, absl::StrCat("encoding \"", Shown(text), "\": ", problem));
}

bool Keeps(ValueTransform transform) {
  return transform == ValueTransform::kTopK || transform == ValueTransform::kRandomK;
}

bool TakeShare(absl::string_view word, Encoding* encoding) {
  return Keeps(encoding->transform) && absl::SimpleAtod(word, &encoding->share) &&
         encoding->share > 0 && encoding->share <= 1;
}

bool TakeRank(absl::string_view word, Encoding* encoding) {
  return encoding->transform == ValueTransform::kLowRank &&
         absl::SimpleAtoi(word, &encoding->rank) && encoding->rank >= 1 &&
         encoding->rank <= kMostRank;
}

bool TakeOption(absl::string_view word, Encoding* encoding) {
  if (word == "stochastic" && encoding->transform == ValueTransform::kInt8) {
    return encoding->stochastic = true;
  }
  if (word == "float16" && Keeps(encoding->transform)) return encoding->half = true;
  if (word == "momentum" && encoding->takes_momentum()) return encoding->momentum = true;
  const bool top_k = encoding->transform == ValueTransform::kTopK;
  if (top_k && absl::ConsumePrefix(&word, "warmup=")) {
    return absl::SimpleAtoi(word, &encoding->warmup) && encoding->warmup > 0;
  }
  return TakeShare(word, encoding) || TakeRank(word, encoding);
}

std::vector<std::string> ListOfNames() {
  std::vector<std::string> names;
  for (const TransformName& entry : kNames) names.emplace_back(entry.name);
  return names;
}

absl::Status TakeTransform(absl::string_view text, const Words& words, Encoding* encoding) {
  const absl::string_view name = words[0] == "none" ? "float32" : words[0];
  const auto* known =
      std::find_if(std::begin(kNames), std::end(kNames),
                   [name](const TransformName& entry) { return entry.name == name; });
  if (known != std::end(kNames)) {
    encoding->transform = known->transform;
  } else {
    if (!IsTransformName(name) || words.size() > 1) {
      return Bad(text,
                 absl::StrCat("no transform \"", Shown(name), "\"",
                              words.size() > 1 ? " with options" : "", " is known here; expected ",
                              BuiltinTransformNames(), DidYouMean(name, ListOfNames())));
    }
    encoding->transform = ValueTransform::kCustom;
    encoding->custom = std::string(name);
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (TakeOption(words[i], encoding)) continue;
    return Bad(text, absl::StrCat(name, " has no option \"", Shown(words[i]),
                                  "\"; expected int8:stochastic, top-k or random-k with a share in "
                                  "(0, 1] and :float16, top-k:momentum, sign:momentum, "
                                  "top-k:warmup=STEPS, low-rank with a rank of 1 to ",
                                  kMostRank));
  }
  return absl::OkStatus();
}

bool TakeLayout(absl::string_view step, Encoding* encoding) {
  if (encoding->byte_layout != ByteLayout::kPlain) return false;
  for (const LayoutName& entry : kLayouts) {
    if (entry.name != step) continue;
    encoding->byte_layout = entry.layout;
    return true;
  }
  return false;
}

bool TakeCompressor(absl::string_view step, Encoding* encoding) {
  if (step == "pdict") {
    encoding->compressor = Compressor::kPdict;
    return true;
  }
  if (!absl::ConsumePrefix(&step, "zstd")) return false;
  encoding->compressor = Compressor::kZstd;
  if (step.empty()) return true;
  return absl::ConsumePrefix(&step, ":") && absl::SimpleAtoi(step, &encoding->level) &&
         encoding->level >= 1 && encoding->level <= kMostLevel;
}

absl::Status TakeStep(absl::string_view text, absl::string_view step, Encoding* encoding) {
  const bool is_last = encoding->compressor != Compressor::kNone;
  if (!is_last && (TakeLayout(step, encoding) || TakeCompressor(step, encoding))) {
    return absl::OkStatus();
  }
  return Bad(text, absl::StrCat("expected TRANSFORM[:OPTION…][/planes|/nonzero]"
                                "[/zstd[:LEVEL]|/pdict], with a level of 1 to ",
                                kMostLevel));
}

// The shortest text that is read as the same number.
std::string Digits(double number) {
  constexpr int kAlwaysEnough = 17;
  for (int digits = 1;; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, number);
    double read = 0;
    if (digits == kAlwaysEnough || (absl::SimpleAtod(text, &read) && read == number)) return text;
  }
}

std::string TransformText(const Encoding& encoding) {
  for (const TransformName& entry : kNames) {
    if (entry.transform == encoding.transform) return std::string(entry.name);
  }
  return encoding.custom;
}

}  // namespace

bool Encoding::sparse() const { return Keeps(transform); }

uint64_t Encoding::block() const {
  switch (transform) {
    case ValueTransform::kInt8:
      return kInt8Block;
    case ValueTransform::kSign:
      return kSignBlock;
    default:
      return 1;
  }
}

bool Encoding::takes_momentum() const {
  return transform == ValueTransform::kTopK || transform == ValueTransform::kSign;
}

bool Encoding::plain() const {
  return transform == ValueTransform::kFloat32 && byte_layout == ByteLayout::kPlain &&
         compressor == Compressor::kNone;
}

bool operator==(const Encoding& a, const Encoding& b) { return EncodingName(a) == EncodingName(b); }

std::string BuiltinTransformNames() {
  std::string names;
  for (const TransformName& entry : kNames) {
    const bool last = &entry + 1 == std::end(kNames);
    absl::StrAppend(&names, names.empty() ? "" : last ? " or " : ", ", entry.name);
  }
  return names;
}

bool IsTransformName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "auto" &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
         });
}

absl::StatusOr<Encoding> ParseEncoding(absl::string_view text) {
  const Words steps = absl::StrSplit(text, '/');
  Encoding encoding;
  const absl::Status transform = TakeTransform(text, absl::StrSplit(steps[0], ':'), &encoding);
  if (!transform.ok()) return transform;
  for (size_t i = 1; i < steps.size(); ++i) {
    const absl::Status taken = TakeStep(text, steps[i], &encoding);
    if (!taken.ok()) return taken;
  }
  return encoding;
}

std::string EncodingName(const Encoding& encoding) {
  std::string name = TransformText(encoding);
  if (encoding.stochastic) name += ":stochastic";
  if (encoding.sparse()) absl::StrAppend(&name, ":", Digits(encoding.share));
  if (encoding.half) name += ":float16";
  if (encoding.momentum) name += ":momentum";
  if (encoding.warmup > 0) absl::StrAppend(&name, ":warmup=", encoding.warmup);
  if (encoding.transform == ValueTransform::kLowRank) absl::StrAppend(&name, ":", encoding.rank);
  for (const LayoutName& entry : kLayouts) {
    if (entry.layout == encoding.byte_layout) absl::StrAppend(&name, "/", entry.name);
  }
  if (encoding.compressor == Compressor::kZstd) absl::StrAppend(&name, "/zstd:", encoding.level);
  if (encoding.compressor == Compressor::kPdict) name += "/pdict";
  return name;
}

double ShareAt(const Encoding& encoding, uint64_t step) {
  constexpr double kFirst = 0.25;
  constexpr double kStages = 4;
  if (step >= encoding.warmup || encoding.share >= kFirst) return encoding.share;
  const double stage =
      std::floor(kStages * static_cast<double>(step) / static_cast<double>(encoding.warmup));
  return kFirst * std::pow(encoding.share / kFirst, stage / kStages);
}

}  // namespace sluice
