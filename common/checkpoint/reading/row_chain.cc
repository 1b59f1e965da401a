#include "common/checkpoint/reading/row_chain.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/checkpoint/reading/part_file.h"
#include "common/checkpoint/reading/rows_reader.h"

namespace sluice {
namespace {

absl::Status NotTheTables(const RowsHeader& header, size_t tables) {
  return absl::DataLossError(absl::StrCat(
      "it has ", header.tables.size(), " tables, expected the ", tables,
      " of the checkpoint's layout, by name and width, with the slots of its other files"));
}

absl::Status NoRows(StripePlace place, const Layout& layout) {
  return absl::DataLossError(
      absl::StrCat("the checkpoint names no files of rows of server ", place.stripe, " of ",
                   place.stripes, ", and its layout has ", layout.tables().size(), " tables"));
}

}  // namespace

// A file that is being read. After Advance(), `more` says whether its block is valid.
struct RowChain::OpenFile {
  std::string path;
  std::unique_ptr<ReadableFile> file;
  std::unique_ptr<RowsReader> reader;
  uint64_t checksum = 0;  // that the checkpoint names
  bool more = false;

  absl::Status Advance() {
    const auto next = reader->Next();
    if (!next.ok()) return InFile(path, next.status());
    more = *next;
    if (more || reader->checksum() == checksum) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path, ": its checksum is ", reader->checksum(),
                                            ", and the checkpoint names ", checksum,
                                            ": it is another file than the one saved"));
  }

  bool IsAt(uint32_t table, uint32_t bucket) const {
    return more && reader->block().table == table && reader->block().bucket == bucket;
  }
};

absl::StatusOr<std::unique_ptr<RowChain>> RowChain::Open(FileSystem& files, RowSource source,
                                                         const Layout& layout, bool whole) {
  auto chain = absl::WrapUnique(new RowChain(files, std::move(source)));
  for (const RowFiles& server : chain->source_.servers) {
    if (server.files.empty()) return NoRows(server.place, layout);
    for (size_t i = 0; i < server.files.size(); ++i) {
      const auto file = chain->OpenAt(server, i);
      if (!file.ok()) return file.status();
      const absl::Status taken = chain->TakeHeader(**file, layout);
      if (!taken.ok()) return InFile((*file)->path, taken);
    }
    const absl::Status checked = whole ? chain->CheckWhole(server) : absl::OkStatus();
    if (!checked.ok()) return checked;
  }
  return chain;
}

RowsName RowChain::NameOf(const RowFiles& server, size_t file) const {
  return {source_.incarnation, server.files[file].step, server.place};
}

absl::StatusOr<std::unique_ptr<RowChain::OpenFile>> RowChain::OpenAt(const RowFiles& server,
                                                                     size_t file) const {
  auto open = std::make_unique<OpenFile>();
  open->checksum = server.files[file].checksum;
  auto opened = OpenPart(
      files_, source_.directories, NameOf(server, file).FileName(),
      absl::StrCat("it has rows of server ", server.place.stripe, " of ", server.place.stripes));
  if (!opened.ok()) return opened.status();
  open->path = std::move(opened->path);
  open->file = std::move(opened->file);
  open->reader = std::make_unique<RowsReader>(*open->file);
  absl::Status read = open->reader->ReadHeader();
  if (read.ok()) read = CheckHeader(open->reader->header(), server, file);
  if (!read.ok()) return InFile(open->path, read);
  return open;
}

absl::Status RowChain::CheckHeader(const RowsHeader& header, const RowFiles& server,
                                   size_t file) const {
  absl::optional<Step> base;
  if (file > 0) base = server.files[file - 1].step;
  if (header.job_id == source_.job_id && header.incarnation == source_.incarnation &&
      header.step == server.files[file].step && header.base == base &&
      header.place == server.place) {
    return absl::OkStatus();
  }
  const std::string after = base.has_value() ? absl::StrCat(" after step ", base->value()) : "";
  return absl::DataLossError(absl::StrCat(
      "it is of job ", Shown(header.job_id), ", incarnation ", header.incarnation.value(),
      ", step ", header.step.value(), ", server ", header.place.stripe, " of ",
      header.place.stripes, ", and the checkpoint expects job ", source_.job_id, ", incarnation ",
      source_.incarnation.value(), ", step ", server.files[file].step.value(), after, ", server ",
      server.place.stripe, " of ", server.place.stripes));
}

absl::Status RowChain::TakeHeader(const OpenFile& file, const Layout& layout) {
  const RowsHeader& header = file.reader->header();
  const std::vector<TableSpec>& tables = layout.tables();
  const bool same = std::equal(header.tables.begin(), header.tables.end(), tables.begin(),
                               tables.end(), [](const RowsTable& a, const TableSpec& b) {
                                 return a.name == b.name && a.width == b.width;
                               });
  if (!same || (!tables_.empty() && tables_ != header.tables))
    return NotTheTables(header, tables.size());
  tables_ = header.tables;
  return absl::OkStatus();
}

absl::Status RowChain::CheckWhole(const RowFiles& server) const {
  for (size_t i = 0; i < server.files.size(); ++i) {
    const auto file = OpenAt(server, i);
    if (!file.ok()) return file.status();
    do {
      const absl::Status read = (*file)->Advance();
      if (!read.ok()) return read;
    } while ((*file)->more);
  }
  return absl::OkStatus();
}

absl::Status RowChain::ForEach(
    absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const {
  for (const RowFiles& server : source_.servers) {
    const absl::Status merged = Merge(server, take);
    if (!merged.ok()) return merged;
  }
  return absl::OkStatus();
}

// For each bucket, the newest file comes first: what it has of an id hides what older files have.
absl::Status RowChain::Merge(
    const RowFiles& server,
    absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const {
  std::vector<std::unique_ptr<OpenFile>> newest_first;
  for (size_t i = server.files.size(); i-- > 0;) {
    auto file = OpenAt(server, i);
    if (!file.ok()) return file.status();
    const absl::Status read = (*file)->Advance();
    if (!read.ok()) return read;
    newest_first.push_back(*std::move(file));
  }
  absl::flat_hash_set<RowId> seen;  // in newer files, as rows or as removed
  for (uint32_t table = 0; table < tables_.size(); ++table) {
    for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
      seen.clear();
      for (const auto& file : newest_first) {
        const bool oldest = file == newest_first.back();
        while (file->IsAt(table, bucket)) {
          const RowsBlock& block = file->reader->block();
          ForEachStored(block, tables_[table].elements(), [&](const StoredRow& row) {
            if (oldest ? seen.count(row.id) == 0 : seen.insert(row.id).second) take(table, row);
          });
          if (!oldest) seen.insert(block.removed.begin(), block.removed.end());
          const absl::Status read = file->Advance();
          if (!read.ok()) return read;
        }
      }
    }
  }
  return absl::OkStatus();
}

std::vector<RowSlots> RowChain::slots() const {
  std::vector<RowSlots> slots;
  for (const RowsTable& table : tables_) slots.push_back(table.slots);
  return slots;
}

}  // namespace sluice
