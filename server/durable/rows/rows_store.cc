#include "server/durable/rows/rows_store.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/strip.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/checkpoint/reading/rows_reader.h"
#include "server/durable/format/unfinished_file.h"
#include "server/durable/rows/rows_writer.h"

namespace sluice {
namespace {

std::vector<RowsTable> TablesOf(const RowsOf& of) {
  const std::vector<TableSpec>& specs = of.layout.tables();
  CHECK_EQ(of.slots.size(), specs.size());
  std::vector<RowsTable> tables;
  for (size_t i = 0; i < specs.size(); ++i) {
    tables.push_back({specs[i].name, specs[i].width, of.slots[i]});
  }
  return tables;
}

}  // namespace

absl::StatusOr<std::vector<RowFile>> RowsStore::Save(const RowsOf& of, const RowSnapshot& rows) {
  if (!sync_.error().ok()) return sync_.error();
  std::vector<RowFile> before;
  if (of.incarnation == incarnation_) before = saved_;
  if (!before.empty() && before.back().step == of.step) return before;
  if (before.size() == kRowFiles || (!before.empty() && before.back().step > of.step)) {
    before.clear();
  }
  RowsHeader header = {of.job_id, of.incarnation, of.step, absl::nullopt, place_, TablesOf(of)};
  if (!before.empty()) header.base = before.back().step;
  RowFile saved = {of.step};
  absl::Status written = WriteThenName(files_, PathOf({of.incarnation, of.step, place_}),
                                       [&](WritableFile& file) -> absl::Status {
                                         const auto checksum = WriteRows(header, rows, file);
                                         saved.checksum = checksum.value_or(0);
                                         return checksum.status();
                                       });
  if (written.ok()) written = sync_.Sync();
  if (!written.ok()) return written;
  before.push_back(saved);
  incarnation_ = of.incarnation;
  saved_ = before;
  return before;
}

absl::StatusOr<absl::optional<Step>> RowsStore::BaseOf(const RowsName& name) const {
  const auto file = files_.Open(PathOf(name));
  if (!file.ok()) return file.status();
  RowsReader reader(**file);
  const absl::Status read = reader.ReadHeader();
  if (!read.ok()) return read;
  return reader.header().base;
}

// Adds the files that lead to this one.
void RowsStore::AddNeeded(RowsName name, const std::set<RowsName>& present,
                          std::set<RowsName>* needed) const {
  while (present.count(name) > 0 && needed->insert(name).second) {
    const auto base = BaseOf(name);
    if (!base.ok()) {
      // Nobody knows which it needs.
      LOG(WARNING) << PathOf(name) << ": " << base.status().message();
      for (const RowsName& other : present) {
        if (other.incarnation == name.incarnation) needed->insert(other);
      }
      return;
    }
    if (!base->has_value()) return;
    name.step = **base;
  }
}

void RowsStore::RemoveOthers(absl::Span<const IncarnationAndStep> keep) const {
  const auto names = files_.List(directory_);
  if (!names.ok() || keep.empty()) return;
  const IncarnationAndStep newest = *std::max_element(keep.begin(), keep.end());
  std::vector<std::string> useless;
  std::set<RowsName> present;
  for (const std::string& file : *names) {
    const auto name = RowsName::Parse(absl::StripSuffix(file, kUnfinished));
    if (!name.has_value() || name->place.stripe % place_.stripes != place_.stripe) continue;
    if (RowsName::Parse(file).has_value()) {
      present.insert(*name);
    } else {
      useless.push_back(directory_ + "/" + file);
    }
  }
  std::set<RowsName> needed;
  for (const RowsName& name : present) {
    const IncarnationAndStep of = {name.incarnation, name.step};
    const bool counts = !(of < newest) || std::find(keep.begin(), keep.end(), of) != keep.end();
    if (counts) AddNeeded(name, present, &needed);
  }
  for (const RowsName& name : present) {
    if (needed.count(name) == 0) useless.push_back(PathOf(name));
  }
  for (const std::string& path : useless) {
    const absl::Status removed = files_.Remove(path);
    LOG_IF(WARNING, !removed.ok()) << removed.message();
  }
}

}  // namespace sluice
