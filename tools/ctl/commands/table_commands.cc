// table: works with the tables of rows in the files of checkpoints.

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/whole_checkpoint.h"
#include "server/durable/format/unfinished_file.h"
#include "server/durable/rows/saved_tables.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/commands/json_line.h"
#include "tools/ctl/commands/saved_table_figures.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

// An error of files, which is no error of a connection, whatever its code.
absl::Status InCheckpoint(const std::string& path, const absl::Status& error) {
  return absl::DataLossError(absl::StrCat(path, ": ", error.message()));
}

absl::Status ListTables(const std::string& checkpoint, const CommonFlags& flags) {
  const auto place = FindCheckpoint(RealFileSystem(), checkpoint);
  if (!place.ok()) return absl::DataLossError(place.status().message());
  const auto tables = TablesOf(*place);
  if (!tables.ok()) return InCheckpoint(place->file, tables.status());
  std::vector<std::vector<std::string>> lines;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TableFigures& table : *tables) {
    lines.push_back({Printable(table.name), absl::StrCat(table.width), absl::StrCat(table.rows),
                     absl::StrCat(table.waiting), absl::StrCat(table.bytes),
                     Printable(absl::StrJoin(table.slots, " "))});
    json.push_back(JsonOf(table));
  }
  const std::vector<Column> columns = {{"TABLE"},         {"WIDTH", true}, {"ROWS", true},
                                       {"WAITING", true}, {"BYTES", true}, {"SLOTS"}};
  if (flags.json) {
    std::cout << LineOf(nlohmann::ordered_json{{"tables", json}});
  } else if (lines.empty()) {
    std::cout << Printable(place->file) << ": the model has no tables\n";
  } else {
    std::cout << TableText(columns, lines);
  }
  return absl::OkStatus();
}

// Says what was written to a file.
absl::Status PrintExported(const std::string& out, size_t tensors, const CommonFlags& flags) {
  const auto file = RealFileSystem().Open(out);
  if (!file.ok()) return absl::DataLossError(file.status().message());
  const uint64_t bytes = (*file)->size();
  if (flags.json) {
    const nlohmann::ordered_json json = {{"file", out}, {"tensors", tensors}, {"bytes", bytes}};
    std::cout << LineOf(json);
  } else if (!flags.quiet) {
    std::cout << absl::StrCat("wrote ", Printable(out), ": ", CountText(tensors, "tensor"), ", ",
                              BytesText(bytes), "\n");
  }
  return absl::OkStatus();
}

absl::Status ExportTo(const std::string& from, const std::string& name, const std::string& out,
                      const CommonFlags& flags) {
  const auto place = FindCheckpoint(RealFileSystem(), from);
  if (!place.ok()) return absl::DataLossError(place.status().message());
  const auto checkpoint = ReadRowsOfCheckpoint(RealFileSystem(), *place);
  if (!checkpoint.ok()) return InCheckpoint(place->file, checkpoint.status());
  const std::vector<TableSpec>& tables = checkpoint->layout->tables();
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableSpec& table) { return table.name == name; });
  if (found == tables.end()) {
    const std::string names = absl::StrJoin(
        tables, ", ", [](std::string* text, const TableSpec& table) { *text += table.name; });
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint has no table \"", name,
                     "\"; its tables are: ", names.empty() ? "none" : names));
  }
  const auto index = static_cast<uint32_t>(found - tables.begin());
  const absl::Status written =
      WriteThenName(RealFileSystem(), out, [&](WritableFile& file) -> absl::Status {
        return ExportTable(*checkpoint->rows, index, found->width, checkpoint->row_slots[index],
                           file);
      });
  if (!written.ok()) return absl::DataLossError(written.message());
  return PrintExported(out, 2 + checkpoint->row_slots[index].size(), flags);  // ids and rows
}

struct TableFlags {
  std::string checkpoint;
  std::string table;
  std::string out;
};

}  // namespace

void AddTableCommands(CLI::App& app, std::vector<Command>& commands) {
  CLI::App& table =
      *app.add_subcommand("table", "works with the tables of rows in the files of checkpoints");
  table.require_subcommand(1);
  auto own = std::make_shared<TableFlags>();
  CLI::App& list = *table.add_subcommand("list", "lists the tables of a checkpoint");
  list.add_option("checkpoint", own->checkpoint, kNameOfCheckpoint)->required();
  commands.push_back(
      {&list, [own](const CommonFlags& flags) { return ListTables(own->checkpoint, flags); }});
  CLI::App& exported = *table.add_subcommand(
      "export", "writes a table to a safetensors file: ids, rows, and each slot");
  exported.add_option("checkpoint", own->checkpoint, kNameOfCheckpoint)->required();
  exported.add_option("table", own->table, "the name of a table")->required();
  exported.add_option("out", own->out, "the file to write, for example items.safetensors")
      ->required();
  commands.push_back({&exported, [own](const CommonFlags& flags) {
                        return ExportTo(own->checkpoint, own->table, own->out, flags);
                      }});
}

}  // namespace sluice
