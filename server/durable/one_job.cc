#include "server/durable/one_job.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/checkpoint/reading/checkpoint_head.h"
#include "common/checkpoint/reading/stripe_file.h"
#include "server/durable/journal/journal.h"

namespace sluice {
namespace {

enum class Kind { kCheckpoint, kStripe, kJournal };

// What the name of a file says.
struct Named {
  Kind kind = Kind::kCheckpoint;
  CheckpointName of;
  StripePlace place;  // of a checkpoint: the leader's
};

absl::optional<Named> Parse(absl::string_view name) {
  const auto checkpoint = CheckpointName::Parse(name);
  if (checkpoint.has_value()) return Named{Kind::kCheckpoint, *checkpoint, {}};
  const auto stripe = StripeName::Parse(name);
  if (stripe.has_value()) {
    return Named{
        Kind::kStripe, {stripe->incarnation, stripe->step}, {stripe->stripe, stripe->stripes}};
  }
  const auto segment = SegmentName::Parse(name);
  if (!segment.has_value()) return absl::nullopt;
  return Named{Kind::kJournal, {segment->incarnation, segment->after}, segment->place};
}

// Empty if the file is damaged.
std::string JobOf(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path);
  if (!file.ok()) return "";
  const ReadListener nobody;
  const auto header = CheckedReader(**file, nobody).ReadHeader();
  if (!header.ok()) return "";
  const auto job = header->metadata.find(kStripeJobKey);
  if (job != header->metadata.end()) return job->second;
  const auto state = header->metadata.find(kSavedStateKey);
  if (state == header->metadata.end()) return "";
  const auto head = DecodeHead(state->second);
  return head.ok() ? head->contents.source.job_id : "";
}

std::string OwnerOf(uint32_t server, uint32_t servers) {
  if (server == 0) return "the first server";
  return absl::StrCat("server ", server, " of ", servers);
}

std::string JobNamed(const std::string& job_id) {
  return job_id.empty() ? "a job that it does not name" : absl::StrCat("job ", Shown(job_id));
}

// The files do not tell which of the two it is, so the message names both.
constexpr char kNoCheckpoint[] =
    "has no checkpoint-* file: it is lost, or none could be saved, for example on a full disk; if "
    "none could, no step is kept anywhere: remove the files stripe-*, rows-* and journal-* of all "
    "servers to begin anew";

// One directory and what speaks against it.
class Finding {
 public:
  Finding(const FirstDirectory& first, uint32_t server, const FoundFiles& found)
      : first_(first), server_(server), found_(found) {}

  absl::Status Check(const FoundFile& file) const {
    const absl::optional<Named> named = Parse(file.name);
    if (!named.has_value())
      return Wrong(file, ", a name that no version of Sluice gives to a file");
    if (first_.job_id.empty()) {
      const std::string why =
          first_.has_begun
              ? absl::StrCat("does not name its job in the file life-*, and ", kNoCheckpoint)
              : "knows no job: it has no checkpoint-* file of its own";
      return Wrong(file,
                   absl::StrCat(", but ", first_.path, ", the first server's directory, ", why));
    }
    const bool of_job = file.job_id.empty() || file.job_id == first_.job_id;
    if (!of_job) {
      return Wrong(file, absl::StrCat(", but ", first_.path,
                                      ", the first server's directory, is "
                                      "that of job ",
                                      Shown(first_.job_id)));
    }
    if (named->of.incarnation >= first_.next) {
      return Wrong(file,
                   absl::StrCat(" and incarnation ", named->of.incarnation.value(), ", but ",
                                first_.path, ", the first server's directory, knows only ",
                                "those before ", first_.next.value(), ": it is an older copy"));
    }
    // If there are only journals, DurableDirectory::BeginIncarnation() decides, by the file `kept`.
    if (first_.saved_by == 0 && named->kind != Kind::kJournal && named->of.step > Step()) {
      return Wrong(file, absl::StrCat(" and step ", named->of.step.value(), ", but ", first_.path,
                                      ", the first server's directory, ", kNoCheckpoint));
    }
    return absl::OkStatus();
  }

  // If as many servers start as have saved the checkpoint, each loads the file of its own stripe. A
  // directory that has only other servers' files is not its own.
  absl::Status CheckPlaces() const {
    if (first_.saved_by != first_.servers || first_.servers == 1) return absl::OkStatus();
    const FoundFile* other = nullptr;
    for (const FoundFile& file : found_.files) {
      const absl::optional<Named> named = Parse(file.name);
      const bool is_stripe = named.has_value() && named->kind == Kind::kStripe;
      if (!is_stripe || named->place.stripes != first_.servers) continue;
      if (named->place.stripe == server_) return absl::OkStatus();
      other = &file;
    }
    if (other == nullptr) return absl::OkStatus();
    return Wrong(*other, absl::StrCat(", but no file of ", OwnerOf(server_, first_.servers)));
  }

 private:
  absl::Status Wrong(const FoundFile& file, const std::string& but) const {
    return absl::DataLossError(absl::StrCat(
        absl::CEscape(found_.directory), ", the directory of ", OwnerOf(server_, first_.servers),
        ", has ", absl::CEscape(file.name), " of ", JobNamed(file.job_id), but,
        "; nothing was changed. Restore the directory that is lost or too old from a copy, or give "
        "each server its own directory again; a new job needs directories without such files"));
  }

  const FirstDirectory& first_;
  const uint32_t server_;
  const FoundFiles& found_;
};

}  // namespace

absl::StatusOr<FoundFiles> FindFiles(FileSystem& files, const std::string& directory) {
  const auto names = files.List(directory);
  if (!names.ok()) return names.status();
  std::map<std::tuple<Kind, uint32_t, uint32_t>, CheckpointName> newest;
  std::map<std::tuple<Kind, uint32_t, uint32_t>, std::string> name_of;
  for (const std::string& name : *names) {
    const auto named = Parse(name);
    if (!named.has_value()) continue;
    const auto key = std::make_tuple(named->kind, named->place.stripes, named->place.stripe);
    const auto known = newest.find(key);
    if (known != newest.end() && named->of < known->second) continue;
    newest[key] = named->of;
    name_of[key] = name;
  }
  FoundFiles found = {directory, {}};
  for (const auto& [key, name] : name_of) {
    const bool tells = std::get<0>(key) != Kind::kJournal;
    found.files.push_back({name, tells ? JobOf(files, directory + "/" + name) : ""});
  }
  return found;
}

absl::Status CheckOneJob(const FirstDirectory& first, uint32_t server, const FoundFiles& found) {
  const Finding finding(first, server, found);
  for (const FoundFile& file : found.files) {
    const absl::Status sound = finding.Check(file);
    if (!sound.ok()) return sound;
  }
  return finding.CheckPlaces();
}

}  // namespace sluice
