#include "server/durable/journal/journal_format.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/saved_state.h"
#include "server/durable/journal/row_sums_format.h"

namespace sluice {
namespace {

constexpr char kMagic[] = "SLUICEJ";
constexpr char kFormat = '2';
constexpr char kFormatWithRows = '3';
constexpr char kFormatWithoutAllTerms = '1';
constexpr uint64_t kNumber = 8;
constexpr uint64_t kHeader = 4 * kNumber;  // with rows, it has one number more

}  // namespace

JournalFrame FrameOf(const std::string& state, absl::Span<const float> sum,
                     absl::string_view rows) {
  JournalFrame frame;
  const char format = rows.empty() ? kFormat : kFormatWithRows;
  frame.head = absl::StrCat(kMagic, absl::string_view(&format, 1), LittleEndian64(state.size()),
                            LittleEndian64(sum.size()));
  if (!rows.empty()) absl::StrAppend(&frame.head, LittleEndian64(rows.size()));
  absl::StrAppend(&frame.head, LittleEndian64(Checksum(frame.head)), state);
  Checksummer body;
  body.Add(state);
  body.Add(BytesOf(sum));
  body.Add(rows);
  frame.tail = LittleEndian64(body.Get());
  return frame;
}

absl::Status JournalReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("the record at byte ", begin_, " ", what));
}

absl::StatusOr<std::string> JournalReader::ReadText(uint64_t size) {
  if (size > file_.size() - offset_) return Damaged("is cut");
  std::string text(size, '\0');
  const absl::Status read = file_.Read(offset_, absl::MakeSpan(text));
  if (!read.ok()) return read;
  offset_ += size;
  return text;
}

absl::StatusOr<JournalReader::Sizes> JournalReader::ReadHeader() {
  auto header = ReadText(kHeader);
  if (!header.ok()) return header.status();
  Sizes sizes;
  sizes.format = (*header)[kNumber - 1];
  if (sizes.format == kFormatWithRows) {
    const auto more = ReadText(kNumber);
    if (!more.ok()) return more.status();
    header->append(*more);
  }
  const absl::string_view numbers = *header;
  const uint64_t end = numbers.size() - kNumber;
  if (!absl::StartsWith(numbers, kMagic) ||
      Checksum(numbers.substr(0, end)) != FromLittleEndian64(numbers.substr(end))) {
    return Damaged("has a header that is damaged");
  }
  if (sizes.format < kFormatWithoutAllTerms || sizes.format > kFormatWithRows) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the record at byte ", begin_, " has the format \"", Shown(numbers.substr(kNumber - 1, 1)),
        "\", this server knows the formats 1 to 3"));
  }
  sizes.state = FromLittleEndian64(numbers.substr(kNumber));
  sizes.elements = FromLittleEndian64(numbers.substr(2 * kNumber));
  if (sizes.format == kFormatWithRows) sizes.rows = FromLittleEndian64(numbers.substr(3 * kNumber));
  return sizes;
}

// What they name is allocated afterwards.
absl::Status JournalReader::CheckSizes(const Sizes& sizes) const {
  if (sizes.elements != 0 && sizes.elements != elements_) {
    return Damaged(
        absl::StrCat("has a sum of ", sizes.elements, " elements, expected ", elements_));
  }
  uint64_t rest = file_.size() - offset_;
  for (const uint64_t part : {sizes.state, sizes.elements * sizeof(float), sizes.rows, kNumber}) {
    if (part > rest) return Damaged("is cut");
    rest -= part;
  }
  return absl::OkStatus();
}

absl::Status JournalReader::Decode(const std::string& state, absl::string_view rows,
                                   JournaledStep* step) const {
  std::vector<TableCount> counts;
  auto record = DecodeSavedStep(state, &counts);
  if (!record.ok()) return Damaged(record.status().message());
  // A model may have nothing but tables.
  const bool has_sum = step->sum.size() > 0 || elements_ == 0;
  if (record->gradients > 0 ? !has_sum : step->sum.size() > 0) {
    return Damaged("has gradients without a sum");
  }
  if (record->gradients == 0 && !counts.empty()) return Damaged("has rows without gradients");
  auto sums = DecodeRowSums(counts, widths_, rows);
  if (!sums.ok()) return Damaged(sums.status().message());
  step->record = *std::move(record);
  step->rows = *std::move(sums);
  return absl::OkStatus();
}

absl::StatusOr<JournaledStep> JournalReader::ReadBody(const Sizes& sizes) {
  const auto state = ReadText(sizes.state);
  if (!state.ok()) return state.status();
  JournaledStep step;
  step.sum = FloatBuffer(sizes.elements);
  const uint64_t sum_bytes = sizes.elements * sizeof(float);
  const absl::Status read =
      file_.Read(offset_, absl::MakeSpan(reinterpret_cast<char*>(step.sum.from(0)), sum_bytes));
  if (!read.ok()) return read;
  offset_ += sum_bytes;
  const auto rows = ReadText(sizes.rows);
  if (!rows.ok()) return rows.status();
  const auto tail = ReadText(kNumber);
  if (!tail.ok()) return tail.status();
  if (FrameOf(*state, step.sum.span(), *rows).tail != *tail) {
    return Damaged("has changed, or is cut");
  }
  const absl::Status decoded = Decode(*state, *rows, &step);
  if (!decoded.ok()) return decoded;
  step.complete = sizes.format != kFormatWithoutAllTerms;
  return step;
}

absl::StatusOr<absl::optional<JournaledStep>> JournalReader::Next() {
  offset_ = begin_;
  if (begin_ == file_.size()) return absl::optional<JournaledStep>();
  const auto sizes = ReadHeader();
  if (!sizes.ok()) return sizes.status();
  const absl::Status sound = CheckSizes(*sizes);
  if (!sound.ok()) return sound;
  auto step = ReadBody(*sizes);
  if (!step.ok()) return step.status();
  begin_ = offset_;
  return absl::make_optional(*std::move(step));
}

}  // namespace sluice
