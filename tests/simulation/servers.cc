#include "tests/simulation/servers.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/tables/disk/disk_file.h"
#include "tests/simulation/link_words.h"
#include "tests/simulation/twin_rows.h"

namespace sluice {
namespace {

constexpr uint64_t kManyActs = 1000000;
constexpr uint64_t kManySteps = 10000;

// The disk of this process, which keeps nothing.
std::shared_ptr<RowDisk> Disk() {
  static auto* const disk = new auto(RowDisk::Open(std::filesystem::temp_directory_path()));
  CHECK(disk->ok()) << disk->status();
  return **disk;
}

// Enough for the index of all rows of that server, and for some of the rows themselves.
TableMemory MemoryOf(const Scenario& scenario, uint32_t server) {
  if (!scenario.rows_on_disk) return {};
  // A row takes 48, and its index 17 to 30; an eighth of the memory stays free.
  constexpr uint64_t kBytesOfARow = 68;
  const TwinRows rows(scenario.layout, scenario.servers, scenario.rows_on_disk);
  return {kBytesOfARow * rows.CountAt(server), Disk()};
}

ShardOptions OptionsOf(const Scenario& scenario) {
  ShardOptions options = scenario.options;
  options.table_memory = MemoryOf(scenario, 0);
  return options;
}

}  // namespace

Servers::Servers(const Scenario& scenario, const Clock& clock, JobListener owner, JobDisks& disks,
                 std::vector<std::string>* log)
    : stripes_(scenario.layout.size(), scenario.servers),
      incarnation_(scenario.options.incarnation),
      disks_(disks),
      log_(log),
      dice_(scenario.link_seed + static_cast<uint32_t>(scenario.options.incarnation.value())),
      carried_(scenario.servers, false),
      shard_(std::make_unique<Shard>(OptionsOf(scenario), clock, std::move(owner))) {
  if (count() == 1) return;
  std::vector<ReplicaLink*> links;
  for (uint32_t server = 1; server < count(); ++server) {
    AddReplica(server, disks.of(server), MemoryOf(scenario, server));
    links.push_back(links_.back().get());
  }
  shard_->Lead(links, nullptr, [this](absl::FunctionRef<bool()> until) { Pump(until); });
  const bool notes = !scenario.journal;
  shard_->durability().SetStepListener([this, notes](Step next) {
    CheckCarried(next);
    if (notes) disks_.NoteStep(next);
  });
}

void Servers::AddReplica(uint32_t server, StripeDisk& disk, const TableMemory& memory) {
  auto files = std::make_unique<LaterExecutor>();
  files_.push_back(files.get());
  Executors executors = Executors::Inline();
  executors.files = std::move(files);
  replicas_.push_back(std::make_unique<Replica>(
      StripePlace{server, count()}, SnapshotMemory::kPrivate, nullptr, std::move(executors),
      [this, server](const ReplicaReport& report) { links_[server - 1]->Report(report); }, &disk,
      memory));
  const auto execute = [this, server](const ReplicaCommand& command) {
    if (log_ != nullptr) Note(absl::StrCat("server ", server, " is told: ", Words(command)));
    replica(server).Execute(command);
  };
  const auto report = [this, server](const ReplicaReport& one) { TakeReport(server, one); };
  links_.push_back(std::make_unique<LateLink>(dice_, execute, report));
}

void Servers::TakeReport(uint32_t server, const ReplicaReport& report) {
  if (dead() == 0u) return;
  if (log_ != nullptr) Note(absl::StrCat("server ", server, " reports: ", Words(report)));
  if (std::holds_alternative<StripeReport>(report)) carried_[server] = true;
  if (const auto* const journal = std::get_if<JournalReport>(&report)) {
    TakeJournalReport(server, *journal);
  }
  if (const auto* const loaded = std::get_if<LoadedReport>(&report)) {
    loaded_.insert(server);
    if (!loaded->failed.ok() && violation_.empty()) {
      violation_ = absl::StrCat(
          "server ", server, " cannot load its part of the checkpoint: ", loaded->failed.message());
    }
  }
  shard_->OnReport(server, report);
}

// Called before each step is published.
void Servers::CheckCarried(Step next) {
  CHECK_LT(++steps_, kManySteps) << "the servers make steps for ever";
  for (uint32_t server = 1; server < count(); ++server) {
    if (!carried_[server] && violation_.empty()) {
      violation_ = absl::StrCat("step ", next.value(), " is published, and server ", server,
                                " has not reported that it has made it");
    }
    carried_[server] = false;
  }
}

void Servers::Note(const std::string& line) { log_->push_back(absl::StrCat("         ", line)); }

// ---- Time ----

void Servers::Settle() {
  Pump([this] { return settled(); });
}

bool Servers::settled() const {
  const bool dying = death_ == Death::kUnnoticed || death_ == Death::kNoticed;
  return death_ == Death::kOver || (!dying && calls_.empty() && idle());
}

bool Servers::idle() const {
  return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->idle(); });
}

void Servers::Pump(absl::FunctionRef<bool()> until) {
  for (uint64_t i = 0; !until(); ++i) {
    CHECK_LT(i, kManyActs) << "the servers wait for each other for ever";
    Act();
  }
}

void Servers::Act() {
  if (AdvanceDeath()) return;
  const bool calls = !calls_.empty() && (idle() || Percent(30));
  if (calls) {
    const size_t which = links_.empty() ? 0 : Below(static_cast<uint32_t>(calls_.size()));
    const auto call = std::move(calls_[which]);
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(which));
    call();
  } else if (!links_.empty()) {
    const uint32_t which = Below(static_cast<uint32_t>(links_.size()));
    if (dead() == which + 1) return;
    // A file takes as long as several steps.
    Percent(2) ? files_[which]->RunNext() : links_[which]->Act();
  }
}

void Servers::ActSome() {
  for (uint32_t i = Below(30); i > 0 && !settled(); --i) Act();
}

void Servers::WriteAll() {
  Settle();
  if (dead().has_value()) return;
  for (LaterExecutor* const files : files_) files->RunAll();
  Settle();
}

// ---- Vectors ----

Values Servers::PartOf(const Values& elements, uint64_t offset, uint32_t server) const {
  if (count() == 1) return elements;
  Values part;
  ForEachUnit(stripes_.unit(), offset, offset + elements.size(), [&](uint64_t begin, uint64_t end) {
    if (stripes_.StripeOf(begin) != server) return;
    const auto first = elements.begin() + static_cast<ptrdiff_t>(begin - offset);
    part.insert(part.end(), first, first + static_cast<ptrdiff_t>(end - begin));
  });
  return part;
}

Values Servers::StripeOfShard(Values elements) const {
  for (uint64_t i = 0; i < elements.size(); ++i) {
    if (stripes_.StripeOf(i) != 0) elements[i] = 0;
  }
  return elements;
}

std::vector<std::shared_ptr<const Snapshot>> Servers::Latest() const {
  std::vector<std::shared_ptr<const Snapshot>> latest = {shard_->store().stripe().latest()};
  for (const auto& replica : replicas_) latest.push_back(replica->stripe().latest());
  return latest;
}

Values Servers::Joined(const std::vector<std::shared_ptr<const Snapshot>>& parts) const {
  Values whole(stripes_.size());
  for (uint32_t server = 0; server < count(); ++server) {
    const absl::Span<const float> part = parts[server]->values.span();
    for (uint64_t i = 0; i < part.size(); ++i) whole[stripes_.InVector(server, i)] = part[i];
  }
  return whole;
}

}  // namespace sluice
