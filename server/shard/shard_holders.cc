// The part of Shard that leads the holders on other servers.

#include <memory>
#include <utility>
#include <variant>

#include "common/base/parallel.h"
#include "common/tensor/stripes.h"
#include "server/shard/shard.h"

namespace sluice {

void Shard::Lead(std::vector<HolderLink*> links, Pump pump) {
  absl::MutexLock lock(&mu_);
  leads_ = !links.empty();
  pump_ = std::move(pump);
  others_.Lead(std::move(links));
}

void Shard::DescribeServersWith(std::function<std::vector<ServerStatus>()> servers) {
  servers_ = std::move(servers);
}

// The first server's own figures are those of the status.
void Shard::DescribeServers(ShardStatus* status) const {
  std::vector<ServerStatus>& servers = status->each_server;
  servers = servers_ == nullptr ? std::vector<ServerStatus>(status->servers) : servers_();
  ServerStatus& own = servers[0];
  own.connected = true;
  if (status->times.initialized.has_value()) own.figures.step = status->step;
  own.figures.wire_bytes_received = status->traffic.wire_bytes_received;
  own.figures.wire_bytes_sent = status->traffic.wire_bytes_sent;
  own.unchanged = status->uptime;
  const std::shared_ptr<const RowTables> tables = TablesHere();
  if (tables != nullptr) own.figures.tables = tables->Describe();
  const Stripes stripes(status->elements, static_cast<uint32_t>(servers.size()));
  for (uint32_t i = 0; i < servers.size(); ++i) servers[i].elements = stripes.SizeOf(i);
  const absl::optional<AwaitedHolder>& awaited = status->awaited_holder;
  if (awaited.has_value()) servers[awaited->server].awaited = status->now - awaited->since;
}

void Shard::OnReport(uint32_t holder, const HolderReport& report) {
  CompletingLock lock(&mu_);
  if (const auto* const have = std::get_if<HaveReport>(&report)) {
    others_.OnReport(holder, *have, lock.completions());
  } else if (const auto* const carried = std::get_if<StripeReport>(&report)) {
    others_.OnReport(holder, *carried);
  } else if (const auto* const loaded = std::get_if<LoadedReport>(&report)) {
    others_.OnReport(holder, *loaded);
  } else if (const auto* const saved = std::get_if<SavedReport>(&report)) {
    others_.OnReport(holder, *saved);
  } else if (const auto* const summary = std::get_if<SummaryReport>(&report)) {
    others_.OnReport(holder, *summary, lock.completions());
  }
}

void Shard::Summarize(const TensorQuery& query, SummaryCallback done) {
  const std::shared_ptr<const Layout> model = layout();
  std::shared_ptr<const Snapshot> current;
  absl::optional<StripedTensor> tensor;
  absl::StatusOr<uint64_t> number = uint64_t{0};
  bool at_once = false;
  {
    absl::MutexLock lock(&mu_);
    current = holder_.latest();
    tensor.emplace(*model, Stripes(model->size(), others_.holders()), query);
    at_once = !leads() && tensor->elements() <= kPartElements;
    if (!at_once) number = others_.Summarize(query, *tensor, current->step, done);
  }
  if (!number.ok()) return done(number.status());
  if (at_once) {
    return done(SummaryOf(*tensor, current->step, {tensor->Read(0, current->values.span())}));
  }
  executors_.summaries->Run([this, number = *number, tensor = *tensor, current] {
    const SummaryReport own = {number, tensor.Read(0, current->values.span())};
    CompletingLock lock(&mu_);
    others_.OnReport(0, own, lock.completions());
  });
}

// Sessions end in many ways, each of which is followed by Advance().
void Shard::EndSessions() {
  if (!leads()) return;
  CompletingLock lock(&mu_);
  const SessionTable& sessions = coordinator_.roster().sessions();
  others_.EndSessions(
      sessions.ended(), [&](SessionId session) { return sessions.IsAlive(session); },
      lock.completions());
}

void Shard::StopWaiting(const absl::Status& why) {
  {
    CompletingLock lock(&mu_);
    others_.Stop(why, lock.completions());
  }
  Advance();
}

absl::optional<uint32_t> Shard::Digest(absl::Duration longest) {
  std::shared_ptr<const Snapshot> current;
  {
    absl::MutexLock lock(&mu_);
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !advancing_; };
    if (!mu_.AwaitWithTimeout(absl::Condition(&idle), longest)) return absl::nullopt;
    current = holder_.latest();
    if (current == nullptr) return absl::nullopt;
    advancing_ = true;
  }
  const auto digest = director_->Digest([&](const StepOrder& order) {
    return CarryOnAll(order, {{current, nullptr}}, longest);
  });
  DoAll(DecideNext());
  return digest;
}

void Shard::EndHolders(int exit_code) {
  absl::MutexLock lock(&mu_);
  others_.End(exit_code);
}

}  // namespace sluice
