#include "tests/testing/server/job_world.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker/job_flags.h"

namespace sluice {
namespace {

std::unique_ptr<GrpcServer> Listen(const PrivateDirectory& directory, Shard& shard) {
  Address address;
  address.unix_path = absl::StrCat(directory.path(), "/server.sock");
  return StartGrpcServer({address, /*token=*/"", nullptr}, {&shard}).value();
}

}  // namespace

JobWorld::JobWorld(const ShardOptions& options)
    : shard_(options, clock_,
             [this](const JobEvent& event) {
               if (event.kind != JobEvent::Kind::kDeserted) return;
               absl::call_once(deserted_once_, [this] { deserted_.Notify(); });
             }),
      directory_(PrivateDirectory::Create().value()),
      door_(Listen(*directory_, shard_)) {}

JobWorld::~JobWorld() {
  StopServer();
  EXPECT_TRUE(shard_.Describe().counters.Balanced());
}

const Job& JobWorld::JobOf(const std::string& name, absl::Duration patience) {
  const auto known = jobs_.find(name);
  if (known != jobs_.end()) return known->second;
  JobFlags flags;
  flags.server = door_->address().ToString();
  flags.name = name;
  flags.connect_timeout = absl::ToDoubleSeconds(patience);
  return jobs_.emplace(name, Job::Start(flags).value()).first->second;
}

void JobWorld::StopServer() { door_->Shutdown(absl::ZeroDuration()); }

void JobWorld::EndLeases() {
  const auto is_open = [](const SessionRecord& record) { return record.alive(); };
  std::vector<SessionRecord> records;
  do {  // bytes that have arrived since the last tick renew a lease
    clock_.Advance(absl::Hours(1));
    shard_.Tick();
    records = shard_.Sessions();
  } while (std::any_of(records.begin(), records.end(), is_open));
}

SessionRecord JobWorld::RecordOf(const std::string& name) const {
  for (const SessionRecord& record : shard_.Sessions()) {
    if (record.worker == name) return record;
  }
  ADD_FAILURE() << name << " has not joined";
  return SessionRecord();
}

}  // namespace sluice
