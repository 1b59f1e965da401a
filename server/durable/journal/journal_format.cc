#include "server/durable/journal/journal_format.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/saved_state.h"

namespace sluice {
namespace {

constexpr char kMagic[] = "SLUICEJ";
constexpr char kFormat = '2';
constexpr char kFormatWithoutAllTerms = '1';
constexpr uint64_t kNumber = 8;
constexpr uint64_t kHeader = 4 * kNumber;

}  // namespace

JournalFrame FrameOf(const std::string& state, absl::Span<const float> sum) {
  JournalFrame frame;
  frame.head = absl::StrCat(kMagic, absl::string_view(&kFormat, 1), LittleEndian64(state.size()),
                            LittleEndian64(sum.size()));
  absl::StrAppend(&frame.head, LittleEndian64(Checksum(frame.head)), state);
  Checksummer body;
  body.Add(state);
  body.Add(BytesOf(sum));
  frame.tail = LittleEndian64(body.Get());
  return frame;
}

absl::Status JournalReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("the record at byte ", offset_, " ", what));
}

absl::StatusOr<std::string> JournalReader::ReadText(uint64_t size) {
  if (size > file_.size() - offset_) return Damaged("is cut");
  std::string text(size, '\0');
  const absl::Status read = file_.Read(offset_, absl::MakeSpan(text));
  if (!read.ok()) return read;
  return text;
}

absl::Status JournalReader::CheckHeader(absl::string_view header) const {
  const uint64_t checksum = FromLittleEndian64(header.substr(3 * kNumber));
  if (!absl::StartsWith(header, kMagic) || Checksum(header.substr(0, 3 * kNumber)) != checksum) {
    return Damaged("has a header that is damaged");
  }
  const char format = header[kNumber - 1];
  if (format == kFormat || format == kFormatWithoutAllTerms) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the record at byte ", offset_, " has the format \"", Shown(header.substr(kNumber - 1, 1)),
      "\", this server knows the formats 1 and 2"));
}

absl::StatusOr<absl::optional<JournaledStep>> JournalReader::Next() {
  if (offset_ == file_.size()) return absl::optional<JournaledStep>();
  const auto header = ReadText(kHeader);
  if (!header.ok()) return header.status();
  const absl::string_view numbers = *header;
  const absl::Status sound = CheckHeader(numbers);
  if (!sound.ok()) return sound;
  const uint64_t state_size = FromLittleEndian64(numbers.substr(kNumber));
  const uint64_t sum_size = FromLittleEndian64(numbers.substr(2 * kNumber));
  if (sum_size != 0 && sum_size != elements_) {
    return Damaged(absl::StrCat("has a sum of ", sum_size, " elements, expected ", elements_));
  }
  const uint64_t rest = file_.size() - offset_ - kHeader;
  const uint64_t sum_bytes = sum_size * sizeof(float);
  if (state_size > rest || sum_bytes + kNumber > rest - state_size) return Damaged("is cut");

  JournaledStep step;
  step.sum = FloatBuffer(sum_size);
  std::string state(state_size, '\0');
  std::string tail(kNumber, '\0');
  const uint64_t begin = offset_ + kHeader;
  absl::Status read = file_.Read(begin, absl::MakeSpan(state));
  if (read.ok()) {
    read = file_.Read(begin + state_size,
                      absl::MakeSpan(reinterpret_cast<char*>(step.sum.span().data()), sum_bytes));
  }
  if (read.ok()) read = file_.Read(begin + state_size + sum_bytes, absl::MakeSpan(tail));
  if (!read.ok()) return read;
  if (FrameOf(state, step.sum.span()).tail != tail) return Damaged("has changed, or is cut");
  auto record = DecodeSavedStep(state);
  if (!record.ok()) return Damaged(record.status().message());
  if ((record->gradients > 0) != (sum_size > 0)) return Damaged("has gradients without a sum");
  step.record = *std::move(record);
  step.complete = numbers[kNumber - 1] != kFormatWithoutAllTerms;
  offset_ = begin + state_size + sum_bytes + kNumber;
  return absl::make_optional(std::move(step));
}

}  // namespace sluice
