#include "common/checkpoint/reading/rows_reader.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/number_bytes.h"

namespace sluice {
namespace {

// A description with as many tables as there may be, of the longest names, is shorter.
constexpr uint64_t kMostDescription = 16 << 20;

// The numbers in the head of a block, after its name.
uint32_t HeadNumber(absl::string_view head, size_t index) {
  return FromLittleEndian<uint32_t>(head.substr(4 + 4 * index));
}

absl::Status WrongBlock(const RowsCounts& counts, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("its block ", counts.blocks, " ", what));
}

}  // namespace

absl::StatusOr<std::string> RowsReader::ReadText(uint64_t size) {
  if (size > file_.size() - offset_) {
    return absl::DataLossError(absl::StrCat("it is cut at byte ", file_.size()));
  }
  std::string text(size, '\0');
  const absl::Status read = file_.Read(offset_, absl::MakeSpan(text));
  if (!read.ok()) return read;
  offset_ += size;
  return text;
}

absl::Status RowsReader::CheckPart(absl::string_view bytes) {
  const auto checksum = ReadText(kRowsChecksum);
  if (!checksum.ok()) return checksum.status();
  if (FromLittleEndian64(*checksum) != Checksum(bytes)) {
    return absl::DataLossError(
        absl::StrCat("the checksum before byte ", offset_,
                     " does not match: bytes have changed since the file was saved"));
  }
  sums_.Add(*checksum);
  return absl::OkStatus();
}

absl::Status RowsReader::ReadHeader() {
  auto prefix = ReadText(kRowsPrefix);
  if (!prefix.ok()) return prefix.status();
  const absl::string_view magic = absl::string_view(*prefix).substr(0, 8);
  if (magic != kRowsMagic) {
    return absl::DataLossError(absl::StrCat("it begins with \"", Shown(magic), "\", expected \"",
                                            kRowsMagic, "\"; is it a file of rows?"));
  }
  const uint64_t size = FromLittleEndian64(absl::string_view(*prefix).substr(8));
  if (size > kMostDescription) {
    return absl::DataLossError(
        absl::StrCat("its description has ", size, " bytes, expected at most ", kMostDescription));
  }
  const auto description = ReadText(size);
  if (!description.ok()) return description.status();
  const absl::Status checked = CheckPart(absl::StrCat(*prefix, *description));
  if (!checked.ok()) return checked;
  auto header = DecodeRowsHeader(*description);
  if (!header.ok()) return header.status();
  header_ = *std::move(header);
  return absl::OkStatus();
}

// The length of a block after its head. What it names is allocated afterwards.
absl::StatusOr<uint64_t> RowsReader::PayloadOf(absl::string_view head) const {
  const uint64_t table = HeadNumber(head, 0);
  const uint64_t ids = HeadNumber(head, 2);
  const uint64_t waiting = HeadNumber(head, 3);
  const uint64_t removed = HeadNumber(head, 4);
  if (table >= header_.tables.size() || HeadNumber(head, 1) >= kRowBuckets || waiting > ids ||
      ids + removed == 0 || ids + removed > kMostBlockIds) {
    return WrongBlock(counts_, "has a head that is damaged");
  }
  const uint64_t bytes = ids * (sizeof(RowId) + sizeof(uint64_t) + sizeof(uint32_t)) +
                         (ids - waiting) * header_.tables[table].elements() * sizeof(float) +
                         removed * sizeof(RowId);
  if (ids + removed > 1 && bytes > kMostBlockBytes) {
    return WrongBlock(counts_,
                      absl::StrCat("has ", bytes, " bytes, expected at most ", kMostBlockBytes));
  }
  return bytes;
}

void RowsReader::Decode(absl::string_view head, absl::string_view payload) {
  block_.table = HeadNumber(head, 0);
  block_.bucket = HeadNumber(head, 1);
  const size_t ids = HeadNumber(head, 2);
  const size_t rows = ids - HeadNumber(head, 3);
  block_.ids = TakeNumbers<RowId>(ids, &payload);
  block_.touched = TakeNumbers<uint64_t>(ids, &payload);
  block_.touches = TakeNumbers<uint32_t>(ids, &payload);
  block_.elements = TakeNumbers<float>(rows * header_.tables[block_.table].elements(), &payload);
  block_.removed = TakeNumbers<RowId>(HeadNumber(head, 4), &payload);
}

// Blocks of a bucket follow each other, and those with rows come first.
absl::Status RowsReader::CheckOrder(const RowsBlock& before) const {
  const StripePlace& place = header_.place;
  if (block_.bucket % place.stripes != place.stripe) {
    return WrongBlock(counts_,
                      absl::StrCat("has bucket ", block_.bucket, ", which is of another server"));
  }
  if (counts_.blocks == 0) return absl::OkStatus();
  const auto last = std::tie(before.table, before.bucket);
  const auto now = std::tie(block_.table, block_.bucket);
  const bool sorted = block_.ids.empty() || (before.removed.empty() && !before.ids.empty() &&
                                             before.ids.back() < block_.ids.front());
  if (last < now || (last == now && sorted)) return absl::OkStatus();
  return WrongBlock(counts_, "does not follow the block before it");
}

absl::Status RowsReader::CheckSteps() const {
  for (size_t i = 0; i < block_.ids.size(); ++i) {
    if (block_.touched[i] <= header_.step.value()) continue;
    return WrongBlock(
        counts_, absl::StrCat("has id ", block_.ids[i], ", touched at step ", block_.touched[i],
                              ", after the file's step, ", header_.step.value()));
  }
  return absl::OkStatus();
}

absl::Status RowsReader::CheckIds() const {
  const auto waiting = std::count_if(block_.touches.begin(), block_.touches.end(),
                                     [](uint32_t touches) { return touches > 0; });
  const uint64_t elements = header_.tables[block_.table].elements();
  const bool fits = (block_.ids.size() - waiting) * elements == block_.elements.size();
  const auto elsewhere = [this](RowId id) { return BucketOf(id) != block_.bucket; };
  const bool sorted = std::adjacent_find(block_.ids.begin(), block_.ids.end(),
                                         std::greater_equal<>()) == block_.ids.end();
  if (fits && sorted && std::none_of(block_.ids.begin(), block_.ids.end(), elsewhere) &&
      std::none_of(block_.removed.begin(), block_.removed.end(), elsewhere)) {
    return absl::OkStatus();
  }
  return WrongBlock(counts_, "has ids that are not in order, or of other buckets");
}

absl::StatusOr<bool> RowsReader::Next() {
  const auto head = ReadText(kRowsBlockHead);
  if (!head.ok()) return head.status();
  if (absl::StartsWith(*head, kRowsEnd)) {
    const absl::Status ended = ReadEnd(*head);
    if (!ended.ok()) return ended;
    return false;
  }
  if (!absl::StartsWith(*head, kRowsBlock)) {
    return WrongBlock(counts_, "has a head that is damaged");
  }
  const auto size = PayloadOf(*head);
  if (!size.ok()) return size.status();
  const auto payload = ReadText(*size);
  if (!payload.ok()) return payload.status();
  absl::Status sound = CheckPart(absl::StrCat(*head, *payload));
  if (!sound.ok()) return sound;
  const RowsBlock before = std::move(block_);
  block_ = RowsBlock();
  Decode(*head, *payload);
  sound = CheckOrder(before);
  if (sound.ok()) sound = CheckIds();
  if (sound.ok()) sound = CheckSteps();
  if (!sound.ok()) return sound;
  ++counts_.blocks;
  counts_.rows += HeadNumber(*head, 2) - HeadNumber(*head, 3);
  counts_.waiting += HeadNumber(*head, 3);
  counts_.removed += block_.removed.size();
  return true;
}

absl::Status RowsReader::ReadEnd(absl::string_view begin) {
  const auto rest = ReadText(kRowsEndBytes - kRowsBlockHead);
  if (!rest.ok()) return rest.status();
  const auto checksum = ReadText(kRowsChecksum);
  if (!checksum.ok()) return checksum.status();
  const std::string end = absl::StrCat(begin, *rest);
  sums_.Add(end);
  checksum_ = sums_.Get();
  if (end != EncodeRowsEnd(counts_) || FromLittleEndian64(*checksum) != checksum_) {
    return absl::DataLossError(absl::StrCat(
        "its end does not match its ", counts_.blocks,
        " blocks: bytes have changed since the file was saved, or blocks are missing"));
  }
  if (offset_ == file_.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("it has ", file_.size() - offset_, " bytes after its end, expected none"));
}

}  // namespace sluice
