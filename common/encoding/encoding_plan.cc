#include "common/encoding/encoding_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"

namespace sluice {
namespace {

bool Matches(absl::string_view name, absl::string_view pattern) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(name, pattern) : name == pattern;
}

// For chunks that are sent as they are, but that must go through the encoder; see PlanChunks().
const Encoding* AsItIs() {
  static const auto* const encoding = new Encoding();
  return encoding;
}

// Null: always plain. `length` is the whole tensor's.
const Encoding* EncodingOf(const LayoutRange& range, uint64_t length,
                           const EncodingChoice& choice) {
  if (range.kind != RangeKind::kParameter) return nullptr;
  const Encoding* const plain = choice.momentum() ? AsItIs() : nullptr;
  const auto named = std::find_if(
      choice.overrides.begin(), choice.overrides.end(),
      [&](const EncodingChoice::Override& entry) { return Matches(range.name, entry.pattern); });
  if (named != choice.overrides.end()) {
    return named->encoding.plain() ? plain : &named->encoding;
  }
  const bool as_it_is = choice.encoding.plain() && !choice.automatic();
  return as_it_is || length < kFewest ? plain : &choice.encoding;
}

// The first dimension of a tensor is taken for its rows.
uint64_t ColumnsOf(const LayoutRange& range) {
  return range.shape.size() < 2 ? 0 : range.length / range.shape[0];
}

// Whether the tensor is encoded from the whole vector, if that has several stripes. Where the
// narrow matrices of its first chunk would be larger than the chunk, each stripe is sent as it is.
bool IsEncodedWhole(const LayoutRange& tensor, const Encoding& encoding) {
  const uint64_t columns = ColumnsOf(tensor);
  if (encoding.transform != ValueTransform::kLowRank || columns == 0 || columns > kMostEncoded) {
    return false;
  }
  const uint64_t rows = std::min(tensor.length, kMostEncoded) / columns;
  return (rows + columns) * encoding.rank <= rows * columns;
}

// The largest length of a chunk. A chunk of a matrix has whole rows, if a row fits into a chunk.
uint64_t LengthOfChunks(uint64_t columns) {
  const bool has_rows = columns > 0 && columns <= kMostEncoded;
  return has_rows ? kMostEncoded / columns * columns : kMostEncoded;
}

// What the chunks of a tensor may be encoded as, if it has that encoding in the choice.
absl::Span<const Encoding> MayBe(const Encoding* encoding, const EncodingChoice& choice) {
  const bool awaits_choice = choice.automatic() && encoding == &choice.encoding;
  return awaits_choice ? absl::MakeConstSpan(choice.candidates) : absl::MakeConstSpan(encoding, 1);
}

bool TakesRows(const Encoding& encoding) {
  return encoding.transform == ValueTransform::kLowRank ||
         encoding.transform == ValueTransform::kCustom;
}

// The size of the largest block; 1 if chunks of whole rows are needed.
uint64_t BlockOf(absl::Span<const Encoding> encodings) {
  if (std::any_of(encodings.begin(), encodings.end(), TakesRows)) return 1;
  uint64_t block = 1;
  for (const Encoding& encoding : encodings) block = std::max(block, encoding.block());
  return block;
}

// Cuts `tensor` into chunks that are like it otherwise.
void Cut(const PlannedChunk& tensor, uint64_t block, std::vector<PlannedChunk>* chunks) {
  PlannedChunk chunk = tensor;
  if (block > 1) chunk.columns = 0;  // a chunk may end within a row
  const uint64_t length = LengthOfChunks(chunk.columns);
  for (; chunk.begin < tensor.end; chunk.begin = chunk.end) {
    const uint64_t after_block = chunk.begin % block;
    const uint64_t most = after_block > 0 ? block - after_block : length;
    chunk.end = std::min(tensor.end, chunk.begin + most);
    chunks->push_back(chunk);
  }
}

constexpr absl::string_view kAuto = "auto";
constexpr const char* kLossless[] = {"float32/nonzero/pdict", "float32/nonzero/zstd:1"};

using Words = std::vector<absl::string_view>;

absl::Status AddCandidate(absl::string_view word, std::vector<Encoding>* candidates) {
  auto encoding = ParseEncoding(word);
  if (!encoding.ok()) return encoding.status();
  if (encoding->momentum) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("auto cannot choose \"", Shown(word),
                                  "\", because with :momentum the server has no momentum for any "
                                  "encoding; leave :momentum out, or use that encoding alone"));
  }
  const bool known =
      std::find(candidates->begin(), candidates->end(), *encoding) != candidates->end();
  if (!known) candidates->push_back(*std::move(encoding));
  if (candidates->size() <= 1 + kMostCandidates) return absl::OkStatus();
  return MakeError(Reason::kBadArgument, absl::StrCat("auto has one encoding too many: \"",
                                                      Shown(word), "\"; expected at most ",
                                                      kMostCandidates, " in addition to float32"));
}

// In an override the first '=' comes before any ':'; in an option like ":warmup=5" it comes after.
bool IsOverride(absl::string_view word) { return word.find('=') < word.find(':'); }

// Takes "auto" and the candidates that follow it off the front of `words`.
absl::Status TakeCandidates(Words* words, std::vector<Encoding>* candidates) {
  candidates->emplace_back();
  absl::string_view first = words->front();
  size_t taken = 1;
  if (first == kAuto) {
    for (const char* name : kLossless) {
      const absl::Status added = AddCandidate(name, candidates);
      if (!added.ok()) return added;
    }
  } else {
    (*words)[0].remove_prefix(kAuto.size() + 1);
    for (taken = 0; taken < words->size() && !IsOverride((*words)[taken]); ++taken) {
      const absl::Status added = AddCandidate((*words)[taken], candidates);
      if (!added.ok()) return added;
    }
  }
  words->erase(words->begin(), words->begin() + static_cast<std::ptrdiff_t>(taken));
  return absl::OkStatus();
}

bool SaysAuto(absl::string_view word) {
  return word == kAuto || absl::StartsWith(word, absl::StrCat(kAuto, ":"));
}

}  // namespace

bool EncodingChoice::plain() const {
  return encoding.plain() && !automatic() &&
         std::all_of(overrides.begin(), overrides.end(),
                     [](const Override& entry) { return entry.encoding.plain(); });
}

bool EncodingChoice::sparse() const {
  return encoding.sparse() ||
         std::any_of(candidates.begin(), candidates.end(),
                     [](const Encoding& candidate) { return candidate.sparse(); }) ||
         std::any_of(overrides.begin(), overrides.end(),
                     [](const Override& entry) { return entry.encoding.sparse(); });
}

const Encoding* EncodingChoice::matrix_candidate() const {
  const auto found = std::find_if(
      candidates.begin(), candidates.end(),
      [](const Encoding& candidate) { return candidate.transform == ValueTransform::kLowRank; });
  return found == candidates.end() ? nullptr : &*found;
}

bool EncodingChoice::momentum() const {
  return encoding.momentum ||
         std::any_of(overrides.begin(), overrides.end(),
                     [](const Override& entry) { return entry.encoding.momentum; });
}

absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text) {
  Words words = absl::StrSplit(text, ',');
  EncodingChoice choice;
  if (SaysAuto(words[0])) {
    const absl::Status taken = TakeCandidates(&words, &choice.candidates);
    if (!taken.ok()) return taken;
  } else {
    auto first = ParseEncoding(words[0]);
    if (!first.ok()) return first.status();
    choice.encoding = *std::move(first);
    words.erase(words.begin());
  }
  for (absl::string_view word : words) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (entry.first.empty() || !IsOverride(word)) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("encoding \"", Shown(text), "\": expected ",
                                    "ENCODING[,PATTERN=ENCODING…], found \"", Shown(word),
                                    "\" after the first comma"));
    }
    auto encoding = ParseEncoding(entry.second);
    if (!encoding.ok()) return encoding.status();
    choice.overrides.push_back({std::string(entry.first), *std::move(encoding)});
  }
  if (choice.automatic() && choice.momentum()) {
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("encoding \"", Shown(text),
                     "\": auto cannot be combined with :momentum; leave one of them out"));
  }
  return choice;
}

absl::Status CheckKnown(const EncodingChoice& choice, const TransformRegistry& transforms) {
  std::vector<const Encoding*> named = {&choice.encoding};
  for (const Encoding& candidate : choice.candidates) named.push_back(&candidate);
  for (const EncodingChoice::Override& entry : choice.overrides) named.push_back(&entry.encoding);
  for (const Encoding* encoding : named) {
    const absl::Status found = transforms.Find(encoding->transform, encoding->custom).status();
    if (found.ok()) continue;
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("encoding \"", EncodingName(*encoding), "\": ", found.message()));
  }
  return absl::OkStatus();
}

std::string EncodingChoiceName(const EncodingChoice& choice) {
  std::string name = EncodingName(choice.encoding);
  if (choice.automatic()) {
    const auto append = [](std::string* out, const Encoding& candidate) {
      out->append(EncodingName(candidate));
    };
    const auto lossless = ParseEncodingChoice(kAuto);
    const bool usual = choice.candidates == lossless->candidates;
    name = usual ? std::string(kAuto)
                 : absl::StrCat(kAuto, ":", absl::StrJoin(choice.candidates, ",", append));
  }
  for (const EncodingChoice::Override& entry : choice.overrides) {
    absl::StrAppend(&name, ",", entry.pattern, "=", EncodingName(entry.encoding));
  }
  return name;
}

std::vector<PlannedChunk> PlanChunks(const Layout& layout, const EncodingChoice& choice) {
  std::vector<PlannedChunk> chunks;
  for (const LayoutRange& range : layout.ranges()) {
    const LayoutRange& tensor = layout.WholeOf(range);
    const Encoding* const encoding = EncodingOf(range, tensor.length, choice);
    const bool continues = !chunks.empty() && chunks.back().encoding == encoding;
    const bool small = continues && range.end() - chunks.back().begin <= kMostEncoded;
    if (continues && (encoding == nullptr || (encoding == AsItIs() && small))) {
      chunks.back().end = range.end();
    } else if (encoding == nullptr) {
      chunks.push_back({range.offset, range.end(), 0, nullptr});
    } else {
      const bool awaits_choice = choice.automatic() && encoding == &choice.encoding;
      const bool elsewhere = layout.stripe() != nullptr && IsEncodedWhole(tensor, *encoding);
      Cut({range.offset, range.end(), ColumnsOf(range), encoding, awaits_choice, elsewhere},
          BlockOf(MayBe(encoding, choice)), &chunks);
    }
  }
  return chunks;
}

std::vector<PlannedChunk> PlanWhole(const Layout& vector, const EncodingChoice& choice) {
  std::vector<PlannedChunk> chunks;
  for (const LayoutRange& tensor : vector.ranges()) {
    const Encoding* const encoding = EncodingOf(tensor, tensor.length, choice);
    if (encoding == nullptr || !IsEncodedWhole(tensor, *encoding)) continue;
    Cut({tensor.offset, tensor.end(), ColumnsOf(tensor), encoding}, /*block=*/1, &chunks);
  }
  return chunks;
}

}  // namespace sluice
