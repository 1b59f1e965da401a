#include "common/tensor/table_spec.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

absl::Status BadTable(const TableSpec& table, absl::string_view problem) {
  return MakeError(Reason::kBadLayout,
                   absl::StrCat("table \"", Shown(table.name), "\" of the layout: ", problem));
}

absl::string_view KindName(RowInitializerKind kind) {
  switch (kind) {
    case RowInitializerKind::kUniform:
      return "uniform";
    case RowInitializerKind::kNormal:
      return "normal";
    case RowInitializerKind::kZero:
      break;
  }
  return "zeros";
}

auto Fields(const TableSpec& t) {
  return std::tie(t.name, t.width, t.initializer.kind, t.initializer.scale, t.initializer.seed,
                  t.divisor, t.admit_after, t.evict_after, t.max_rows);
}

// Words of 64 random bits of one row.
class Words {
 public:
  Words(uint64_t key, RowId id) : state_(MixId(key + MixId(id))) {}

  uint64_t Next() { return MixId(state_ += kGolden); }

 private:
  uint64_t state_;
};

float Uniform(float scale, Words& words) {
  const auto upper = static_cast<float>(words.Next() >> 40);
  return scale * (upper / 8388608.0f - 1.0f);
}

float Normal(float scale, Words& words) {
  int32_t sum = 0;
  for (int word = 0; word < 3; ++word) {
    const uint64_t bits = words.Next();
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int32_t>(bits >> shift & 65535);
  }
  return scale * static_cast<float>(sum - 393210) / 65536.0f;
}

}  // namespace

bool operator==(const TableSpec& a, const TableSpec& b) { return Fields(a) == Fields(b); }

absl::Status Validate(const TableSpec& table) {
  if (table.width == 0 || table.width > TableSpec::kMaxWidth) {
    return BadTable(table, absl::StrCat("its width is ", table.width, ", expected 1 to ",
                                        TableSpec::kMaxWidth));
  }
  const RowInitializer& initializer = table.initializer;
  if (!std::isfinite(initializer.scale) || initializer.scale < 0) {
    return BadTable(table, absl::StrCat("the scale of its initializer is ", initializer.scale,
                                        ", expected a finite number that is not negative"));
  }
  if (initializer.kind == RowInitializerKind::kZero && initializer.scale != 0) {
    return BadTable(table, absl::StrCat("its rows begin as zeros with scale ", initializer.scale,
                                        ", expected 0; name uniform or normal rows"));
  }
  if (table.admit_after > TableSpec::kMaxAdmitAfter) {
    return BadTable(table, absl::StrCat("admit_after is ", table.admit_after, ", expected at most ",
                                        TableSpec::kMaxAdmitAfter));
  }
  return absl::OkStatus();
}

std::string Describe(const TableSpec& table) {
  const RowInitializer& initializer = table.initializer;
  std::string text = absl::StrCat("\"", Shown(table.name), "\" of rows of ", table.width,
                                  " that begin as ", KindName(initializer.kind));
  if (initializer.kind != RowInitializerKind::kZero) {
    absl::StrAppend(&text, " ", initializer.scale, " (seed ", initializer.seed, ")");
  }
  if (table.divisor == RowDivisor::kRowContributors) absl::StrAppend(&text, ", row divisor");
  if (table.admit_after > 1) absl::StrAppend(&text, ", admit_after ", table.admit_after);
  if (table.evict_after > 0) absl::StrAppend(&text, ", evict_after ", table.evict_after);
  if (table.max_rows > 0) absl::StrAppend(&text, ", max_rows ", table.max_rows);
  return text;
}

absl::Status RowOfAnotherServer(const TableSpec& table, RowId id) {
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("row ", id, " of table \"", Shown(table.name), "\" is in bucket ", BucketOf(id),
                   ", which another server has; send it to the server "
                   "whose index is the bucket modulo the number of servers"));
}

void InitializeRow(const RowInitializer& initializer, uint64_t key, RowId id,
                   absl::Span<float> row) {
  if (initializer.kind == RowInitializerKind::kZero) {
    std::fill(row.begin(), row.end(), 0.0f);
    return;
  }
  Words words(key, id);
  const bool uniform = initializer.kind == RowInitializerKind::kUniform;
  for (float& element : row) {
    element = uniform ? Uniform(initializer.scale, words) : Normal(initializer.scale, words);
  }
}

}  // namespace sluice
