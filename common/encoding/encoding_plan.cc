#include "common/encoding/encoding_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/encoding/codec.h"
#include "common/error.h"

namespace sluice {
namespace {

bool Matches(absl::string_view name, absl::string_view pattern) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(name, pattern) : name == pattern;
}

// Null: plain.
const Encoding* EncodingOf(const LayoutRange& range, const EncodingChoice& choice) {
  if (range.kind != RangeKind::kParameter) return nullptr;
  const auto named = std::find_if(
      choice.overrides.begin(), choice.overrides.end(),
      [&](const EncodingChoice::Override& entry) { return Matches(range.name, entry.pattern); });
  if (named != choice.overrides.end()) {
    return named->encoding.plain() ? nullptr : &named->encoding;
  }
  return choice.encoding.plain() || range.length < kFewest ? nullptr : &choice.encoding;
}

// Of a tensor whose first dimension are the rows.
uint64_t ColumnsOf(const LayoutRange& range) {
  return range.shape.size() < 2 ? 0 : range.length / range.shape[0];
}

// The largest chunks of a tensor, of whole rows if it is a matrix of such.
uint64_t LengthOfChunks(uint64_t columns) {
  const bool has_rows = columns > 0 && columns <= kMostEncoded;
  return has_rows ? kMostEncoded / columns * columns : kMostEncoded;
}

}  // namespace

bool EncodingChoice::plain() const {
  return encoding.plain() &&
         std::all_of(overrides.begin(), overrides.end(),
                     [](const Override& entry) { return entry.encoding.plain(); });
}

bool EncodingChoice::sparse() const {
  return encoding.sparse() ||
         std::any_of(overrides.begin(), overrides.end(),
                     [](const Override& entry) { return entry.encoding.sparse(); });
}

absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ',');
  EncodingChoice choice;
  auto first = ParseEncoding(words[0]);
  if (!first.ok()) return first.status();
  choice.encoding = *std::move(first);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (entry.first.empty() || !absl::StrContains(words[i], '=')) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("encoding \"", Shown(text), "\": expected ",
                                    "ENCODING[,PATTERN=ENCODING…], found \"", Shown(words[i]),
                                    "\" after the first comma"));
    }
    auto encoding = ParseEncoding(entry.second);
    if (!encoding.ok()) return encoding.status();
    choice.overrides.push_back({std::string(entry.first), *std::move(encoding)});
  }
  return choice;
}

std::string EncodingChoiceName(const EncodingChoice& choice) {
  std::string name = EncodingName(choice.encoding);
  for (const EncodingChoice::Override& entry : choice.overrides) {
    absl::StrAppend(&name, ",", entry.pattern, "=", EncodingName(entry.encoding));
  }
  return name;
}

std::vector<PlannedChunk> PlanChunks(const Layout& layout, const EncodingChoice& choice) {
  std::vector<PlannedChunk> chunks;
  for (const LayoutRange& range : layout.ranges()) {
    const uint64_t end = range.end();
    const Encoding* const encoding = EncodingOf(range, choice);
    if (encoding == nullptr) {
      const bool continues = !chunks.empty() && chunks.back().encoding == nullptr;
      if (continues) {
        chunks.back().end = end;
      } else {
        chunks.push_back({range.offset, end, 0, nullptr});
      }
      continue;
    }
    const uint64_t columns = ColumnsOf(range);
    const uint64_t length = LengthOfChunks(columns);
    for (uint64_t begin = range.offset; begin < end; begin += length) {
      chunks.push_back({begin, std::min(end, begin + length), columns, encoding});
    }
  }
  return chunks;
}

}  // namespace sluice
