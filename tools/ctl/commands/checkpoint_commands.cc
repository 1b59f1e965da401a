// checkpoint: saves one of a running server, and works with the files that servers wrote.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/checkpoint/reading/constants_file.h"
#include "common/checkpoint/reading/part_file.h"
#include "common/checkpoint/reading/read_progress.h"
#include "common/checkpoint/reading/stripe_reader.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/load_stripe.h"
#include "server/durable/checkpoint/whole_checkpoint.h"
#include "server/durable/format/saved_state.h"
#include "server/state/checkpoint_source.h"
#include "tools/ctl/commands/checkpoint_summary.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/commands/json_line.h"
#include "tools/ctl/commands/saved_table_figures.h"
#include "tools/ctl/render/json.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<ShardCheckpoint> ReadState(const std::string& path) {
  const auto file = RealFileSystem().Open(path);
  if (!file.ok()) return file.status();
  return ReadCheckpointState(**file);
}

ProgressOutput ProgressOf(const CommonFlags& flags) {
  return flags.quiet ? ProgressOutput() : ProgressOutput::OnStderr();
}

absl::StatusOr<ShardCheckpoint> Read(const CheckpointPlace& place, const CommonFlags& flags) {
  return ReadWholeCheckpoint(RealFileSystem(), place, ProgressOf(flags));
}

// An error of a file, which is no error of a connection, whatever its code.
absl::Status FileError(const absl::Status& status) { return absl::DataLossError(status.message()); }

size_t ServersOf(const ShardCheckpoint& state) { return std::max<size_t>(state.stripes.size(), 1); }

// The bytes of a checkpoint's files that are in the directories, without the files of rows that
// checkpoints before it have, too. The other servers may have saved theirs elsewhere.
absl::StatusOr<uint64_t> BytesOf(const CheckpointPlace& place, const CheckpointName& name,
                                 uint32_t stripes) {
  const auto file = RealFileSystem().Open(place.file);
  if (!file.ok()) return file.status();
  uint64_t bytes = (*file)->size();
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < stripes; ++i) {
    parts.push_back(StripeName{"", name.incarnation, name.step, i, stripes}.FileName());
  }
  for (uint32_t i = 0; i < std::max(stripes, 1u); ++i) {
    parts.push_back(RowsName{name.incarnation, name.step, {i, std::max(stripes, 1u)}}.FileName());
  }
  for (const std::string& part : parts) {
    const auto opened = OpenPart(RealFileSystem(), place.directories, part, "");
    if (opened.ok()) bytes += opened->file->size();
  }
  return bytes;
}

absl::Status List(const std::string& directory, const CommonFlags& flags) {
  std::vector<std::string> others = WordsOfName(RealFileSystem(), directory);
  const std::string first = others.empty() ? directory : others.front();
  if (!others.empty()) others.erase(others.begin());
  const absl::Status there = CheckDirectories(RealFileSystem(), others);
  if (!there.ok()) return FileError(there);
  const CheckpointStore store(RealFileSystem(), first, 1, 1, others);
  const auto names = store.List();
  if (!names.ok()) return FileError(names.status());
  std::vector<std::vector<std::string>> rows;
  Json files = Json::array();
  for (const CheckpointName& name : *names) {
    const CheckpointPlace place = store.PlaceOf(name);
    const auto state = ReadState(place.file);
    const auto bytes = BytesOf(place, name, state.ok() ? state->stripes.size() : 0);
    if (!bytes.ok()) return FileError(bytes.status());
    rows.push_back({absl::StrCat(name.step.value()), absl::StrCat(name.incarnation.value()),
                    state.ok() ? absl::StrCat(ServersOf(*state)) : "?", absl::StrCat(*bytes),
                    name.FileName()});
    files.push_back({{"step", name.step.value()},
                     {"incarnation", name.incarnation.value()},
                     {"servers", state.ok() ? Json(ServersOf(*state)) : Json()},  // null: damaged
                     {"bytes", *bytes},
                     {"file", name.FileName()}});
  }
  if (rows.empty() && !flags.json) {
    std::cout << Printable(directory) << " has no checkpoint\n";
    return absl::OkStatus();
  }
  const std::vector<Column> columns = {
      {"STEP", true}, {"INCARNATION", true}, {"SERVERS", true}, {"BYTES", true}, {"FILE"}};
  std::cout << (flags.json ? LineOf(Json{{"checkpoints", files}}) : TableText(columns, rows));
  return absl::OkStatus();
}

// One line about a file that can be read.
std::string WholeText(const std::string& path, const ShardCheckpoint& checkpoint) {
  const std::string servers =
      checkpoint.stripes.empty() ? "" : absl::StrCat(", of ", ServersOf(checkpoint), " servers");
  const size_t count = checkpoint.layout->tables().size();
  const std::string tables = count == 0 ? "" : absl::StrCat(", ", CountText(count, "table"));
  return absl::StrFormat("%s: whole: step %d of job %s, %d tensors, %d elements, %d slots%s%s\n",
                         Printable(path), checkpoint.step.value(), Printable(checkpoint.job_id),
                         checkpoint.layout->ranges().size(), checkpoint.layout->size(),
                         checkpoint.slots.size(), tables, servers);
}

// Checks one stripe after the other, so that each file that is missing or damaged is named and no
// more than one stripe is in memory.
absl::Status CheckStripes(const CheckpointPlace& place, const ShardCheckpoint& state,
                          const ProgressOutput& output) {
  ReadProgress progress(place.file, *state.layout, state.slots.size(), output);
  std::vector<std::string> problems;
  const uint32_t stripes = static_cast<uint32_t>(state.stripes.size());
  for (uint32_t i = 0; i < stripes; ++i) {
    const StripePlace stripe = {i, stripes};
    const absl::Status loaded = LoadStripe(StripeReader(RealFileSystem(), place, stripe), stripe,
                                           SourceOf(state), *state.layout, progress.listener())
                                    .status();
    if (!loaded.ok()) problems.emplace_back(loaded.message());
  }
  return problems.empty() ? absl::OkStatus() : absl::DataLossError(absl::StrJoin(problems, "; "));
}

// Reads and checks all files of a checkpoint. What it returns may lack the values.
absl::StatusOr<ShardCheckpoint> Check(const CheckpointPlace& place, const CommonFlags& flags) {
  auto state = ReadState(place.file);
  if (!state.ok()) return state;
  const auto constants = ReadConstants(RealFileSystem(), DirectoryOf(place.file), state->job_id,
                                       state->layout->constants());
  if (!constants.ok()) return constants.status();
  if (state->stripes.empty()) return Read(place, flags);
  const absl::Status checked = CheckStripes(place, *state, ProgressOf(flags));
  if (!checked.ok()) return checked;
  return state;
}

// Returns whether the checkpoint is undamaged, and prints the result.
bool VerifyAt(const CheckpointPlace& place, const CommonFlags& flags) {
  const std::string& path = place.file;
  const auto checkpoint = Check(place, flags);
  if (flags.json) {
    Json result = {{"path", path}, {"whole", checkpoint.ok()}};
    if (checkpoint.ok()) {
      result["step"] = checkpoint->step.value();
      result["servers"] = ServersOf(*checkpoint);
    } else {
      result["error"] = std::string(checkpoint.status().message());
    }
    std::cout << LineOf(result);
  } else if (!checkpoint.ok()) {
    std::cout << Printable(path) << ": DAMAGED: " << Printable(checkpoint.status().message())
              << "\n";
  } else if (!flags.quiet) {
    std::cout << WholeText(path, *checkpoint);
  }
  return checkpoint.ok();
}

absl::Status Verify(const std::vector<std::string>& names, const CommonFlags& flags) {
  std::vector<CheckpointPlace> places;
  for (const std::string& name : names) {
    const auto found = FindCheckpoints(RealFileSystem(), name);
    if (!found.ok()) return FileError(found.status());
    places.insert(places.end(), found->begin(), found->end());
  }
  int damaged = 0;
  for (const CheckpointPlace& place : places) {
    if (!VerifyAt(place, flags)) ++damaged;
  }
  if (damaged == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "found ", CountText(static_cast<uint64_t>(damaged), "damaged checkpoint"),
      "; remove what is damaged, or copy it here again; if each of several servers has a directory "
      "of its own, name them all, the first server's first, with commas between"));
}

absl::Status InFile(const CheckpointPlace& place, const absl::Status& error) {
  return absl::DataLossError(absl::StrCat(place.file, ": ", error.message()));
}

// All but the values, as the file has it. It needs no stripes of several servers.
absl::Status ShowJson(const CheckpointPlace& place, const CommonFlags& flags) {
  auto checkpoint = ReadState(place.file);
  // The checksum of one server's file is at its end, after the values.
  if (checkpoint.ok() && checkpoint->stripes.empty()) checkpoint = Read(place, flags);
  if (!checkpoint.ok()) return InFile(place, checkpoint.status());
  auto state = nlohmann::json::parse(
      EncodeSavedState(*checkpoint, checkpoint->stripes, checkpoint->row_files));
  if (!checkpoint->layout->tables().empty()) {
    const auto tables = TablesOf(place);
    if (!tables.ok()) return FileError(tables.status());
    for (const TableFigures& table : *tables)
      state["tables"].push_back(nlohmann::json(JsonOf(table)));
  }
  std::cout << LineOf(state);
  return absl::OkStatus();
}

// When a file was written; InfinitePast() if that is unknown.
absl::Time WrittenAt(const std::string& path) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0 ? absl::TimeFromTimespec(about.st_mtim)
                                         : absl::InfinitePast();
}

absl::Status Show(const std::string& name, const CommonFlags& flags) {
  const auto place = FindCheckpoint(RealFileSystem(), name);
  if (!place.ok()) return FileError(place.status());
  if (flags.json) return ShowJson(*place, flags);
  const auto state = ReadState(place->file);
  if (!state.ok()) return InFile(*place, state.status());
  absl::Status checked = Check(*place, flags).status();
  // Of one server's file nothing is sure then. The first one of several servers is whole.
  if (!checked.ok() && state->stripes.empty()) return InFile(*place, checked);
  const auto bytes = BytesOf(*place, {state->incarnations.current(), state->step},
                             static_cast<uint32_t>(state->stripes.size()));
  if (!bytes.ok()) return FileError(bytes.status());
  CheckpointFiles files = {place->file, WrittenAt(place->file), *bytes, checked.ok()};
  if (checked.ok() && !state->layout->tables().empty()) {
    auto tables = TablesOf(*place);
    if (!tables.ok()) return FileError(tables.status());
    files.tables = *std::move(tables);
  }
  std::cout << SummaryText(*state, files, RealClock().Now());
  return checked.ok() ? absl::OkStatus() : InFile(*place, checked);
}

// Runs the program for this, which lies beside this one: only it needs LibTorch.
absl::Status Export(const std::string& file, const std::string& out, const CommonFlags& flags) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot find the directory of this program by ",
                                            "/proc/self/exe: ", error.message(),
                                            "; mount /proc, or run sluicectl_export itself"));
  }
  const std::string program = self.parent_path() / "sluicectl_export";
  std::vector<std::string> words = {CalledAs(program), "--", file, out};
  if (flags.json) words.insert(words.begin() + 1, "--json");
  if (flags.quiet) words.insert(words.begin() + 1, "--quiet");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return absl::NotFoundError(absl::StrCat(program, ": ", strerror(errno)));
}

absl::Status Save(const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  const auto saved = (*client)->SaveCheckpoint();
  if (!saved.ok()) return saved.status();
  if (flags.json) {
    std::cout << JsonLine(*saved);
  } else if (!flags.quiet) {
    std::cout << absl::StrCat("step ", saved->step(),
                              " is saved on the server's machine: ", Printable(saved->path()),
                              "\n");
  }
  return absl::OkStatus();
}

struct CheckpointFlags {
  std::string directory;
  std::vector<std::string> paths;
  std::string file;
  std::string out;
};

void AddFileCommands(CLI::App& checkpoint, std::vector<Command>& commands) {
  auto own = std::make_shared<CheckpointFlags>();
  CLI::App& list =
      *checkpoint.add_subcommand("list", "lists the checkpoints of a directory, newest first");
  list.add_option("directory", own->directory,
                  "a server's --checkpoint-dir, or those of all servers with commas between them")
      ->required();
  commands.push_back(
      {&list, [own](const CommonFlags& flags) { return List(own->directory, flags); }});
  CLI::App& verify =
      *checkpoint.add_subcommand("verify", "reads and checks every byte of checkpoints");
  verify
      .add_option("checkpoints", own->paths,
                  "of each its file, or the servers' --checkpoint-dir with commas between them: "
                  "then all that are there")
      ->required();
  commands.push_back(
      {&verify, [own](const CommonFlags& flags) { return Verify(own->paths, flags); }});
  CLI::App& show = *checkpoint.add_subcommand(
      "show", "says in words what a checkpoint has, and checks it; --json: all but the values");
  show.add_option("checkpoint", own->file, kNameOfCheckpoint)->required();
  commands.push_back({&show, [own](const CommonFlags& flags) { return Show(own->file, flags); }});
  CLI::App& exported = *checkpoint.add_subcommand(
      "export", "writes the model's tensors to a file for PyTorch's torch.load()");
  exported.add_option("checkpoint", own->file, kNameOfCheckpoint)->required();
  exported.add_option("out", own->out, "the file to write, for example model.pt")->required();
  commands.push_back(
      {&exported, [own](const CommonFlags& flags) { return Export(own->file, own->out, flags); }});
}

}  // namespace

void AddCheckpointCommands(CLI::App& app, std::vector<Command>& commands) {
  CLI::App& checkpoint = *app.add_subcommand(
      "checkpoint", "saves a checkpoint, and works with the files of checkpoints");
  checkpoint.require_subcommand(1);
  commands.push_back(
      {checkpoint.add_subcommand("save", "saves a checkpoint now, on the server's machine"), Save});
  AddFileCommands(checkpoint, commands);
}

}  // namespace sluice
