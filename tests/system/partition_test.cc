// A server and two workers, each a host of its own, speak mutual TLS over links that are cut: to
// the server, from it, and both ways. The server notices that a worker is gone, the other trains
// on, and once the link is whole again, so does the one that was cut off: every push that it was
// told counts does count, once.
// Every tenth cut lasts until the worker, too, has noticed.
//
// All gradients are 1 and steps add them up, so that the parameters are minus the pushes that
// counted. SLUICE_CUTS is how often a link is cut.

#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/own_namespaces.h"
#include "tests/testing/process/private_network.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/record_sheet.h"
#include "tests/testing/quantile.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/inspection.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kServer = 0;
constexpr int kWorkers[] = {1, 2};
constexpr char kPort[] = ":7070";
constexpr absl::Duration kPatience = absl::Minutes(2);  // the longest that TCP waits, and more
constexpr int kLongCut = 10;  // the tenth of each ten: until a keepalive is not answered

enum Direction { kToServer, kFromServer, kBothWays, kDirections };
constexpr const char* kNames[] = {"to the server", "from the server", "both ways"};

int Cuts() {
  const char* const asked = std::getenv("SLUICE_CUTS");
  return asked == nullptr ? kDirections : std::atoi(asked);
}

Words TlsFlags(const TlsFiles& files) {
  return {absl::StrCat("--tls-cert=", files.certificate), absl::StrCat("--tls-key=", files.key),
          absl::StrCat("--tls-ca=", files.authority)};
}

// The job, and its server as the Inspector shows it to this host, which no cut concerns.
class PartitionedJob {
 public:
  explicit PartitionedJob(PrivateNetwork& network) : network_(network) {
    const TestAuthority authority;
    const Credentials inspector = authority.Client({Role::kObserver});
    const std::string address = PrivateNetwork::AddressOf(kServer) + kPort;
    server_ = StartAt(kServer, authority.Server({PrivateNetwork::AddressOf(kServer)}), "server",
                      {RunfilePath("server/sluice_server"), absl::StrCat("--listen=", address),
                       "--workers=2", "--reduction=sum", "--lease=1", "--shared-memory=off"});
    EXPECT_THAT(server_->WaitForOutput("listening on"), IsOk());
    for (const int host : kWorkers) {
      workers_.push_back(StartAt(
          host, authority.Client({Role::kWorker}), NameOf(host),
          {RunfilePath("tests/testing/process/pushing_worker_program"),
           absl::StrCat("--server=", address), absl::StrCat("--name=", NameOf(host)),
           "--gradient=1", "--elements=65536", "--steps=1000000000", "--leave-on-sigterm"}));
    }
    client_ = std::make_unique<ReflectionClient>(TlsChannel(address, inspector));
  }

  Process& server() { return *server_; }
  Process& worker(int host) { return *workers_[host - 1]; }

  struct Seen {
    std::string presence;
    uint64_t accepted = 0;
  };

  // What the server says of the worker at a host.
  Seen Look(int host) {
    const std::string workers = Inspect(*client_, "ListWorkers");
    for (int i = 0; JsonAt(workers, PathOf("workers", i, "worker")) != "absent"; ++i) {
      if (JsonAt(workers, PathOf("workers", i, "worker")) != NameOf(host)) continue;
      Seen seen;
      seen.presence = JsonAt(workers, PathOf("workers", i, "presence"));
      EXPECT_TRUE(
          absl::SimpleAtoi(JsonAt(workers, PathOf("workers", i, "accepted")), &seen.accepted));
      return seen;
    }
    return {};
  }

  // Waits until the server says that of it, and returns for how long; expects that not to take
  // longer than the patience.
  absl::Duration WaitForPresence(int host, const std::string& presence) {
    const absl::Time began = absl::Now();
    while (Look(host).presence != presence && absl::Now() - began < kPatience) {
    }
    EXPECT_EQ(Look(host).presence, presence) << NameOf(host);
    return absl::Now() - began;
  }

  // Waits until ten more pushes of it have counted.
  absl::Duration WaitForPushes(int host) {
    const absl::Time began = absl::Now();
    const uint64_t enough = Look(host).accepted + 10;
    while (Look(host).accepted < enough && absl::Now() - began < kPatience) {
    }
    EXPECT_GE(Look(host).accepted, enough) << NameOf(host) << worker(host).output();
    return absl::Now() - began;
  }

  // How often it has said that it lost the server.
  size_t Losses(int host) {
    EXPECT_FALSE(worker(host).Wait(absl::ZeroDuration()).ok()) << "it has ended";
    return LinesWith(worker(host).output(), " joins again: ").size();
  }

  void WaitForLoss(int host, size_t losses) {
    const absl::Time began = absl::Now();
    while (Losses(host) < losses && absl::Now() - began < kPatience) {
    }
    EXPECT_GE(Losses(host), losses) << NameOf(host);
  }

  // The worker leaves. Returns how many of its pushes it was told count.
  uint64_t Leave(int host) {
    worker(host).Signal(SIGTERM);
    EXPECT_THAT(worker(host).Wait(kPatience), IsOkAndHolds(0)) << worker(host).output();
    const auto told = worker(host).WaitForOutput("pushes that counted: ([0-9]+)");
    uint64_t counted = 0;
    EXPECT_TRUE(told.ok() && absl::SimpleAtoi(*told, &counted)) << told.status();
    return counted;
  }

 private:
  static std::string NameOf(int host) { return absl::StrCat("worker-", host); }

  std::unique_ptr<Process> StartAt(int host, const Credentials& credentials,
                                   const std::string& name, Words words) const {
    const TlsFiles files = WriteCredentials(credentials, ::testing::TempDir() + name);
    for (const std::string& flag : TlsFlags(files)) words.push_back(flag);
    return Start(network_.At(host, words));
  }

  PrivateNetwork& network_;
  std::unique_ptr<Process> server_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::unique_ptr<ReflectionClient> client_;
};

absl::Status Cut(PrivateNetwork& network, int host, int direction) {
  absl::Status cut;
  if (direction != kFromServer) cut = network.Cut(host, kServer);
  if (cut.ok() && direction != kToServer) cut = network.Cut(kServer, host);
  return cut;
}

absl::Status Heal(PrivateNetwork& network, int host, int direction) {
  absl::Status healed;
  if (direction != kFromServer) healed = network.Heal(host, kServer);
  if (healed.ok() && direction != kToServer) healed = network.Heal(kServer, host);
  return healed;
}

TEST(PartitionTest, EveryCutIsNoticedAndTrainingGoesOnExactly) {
  const absl::Status entered = EnterOwnNamespaces(OwnNamespaces::kMountsAndNetwork);
  if (!entered.ok()) GTEST_SKIP() << entered.message();
  const auto network = PrivateNetwork::Make(3);
  if (!network.ok()) GTEST_SKIP() << network.status().message();
  RecordSheet sheet("partition");
  PartitionedJob job(**network);
  std::vector<absl::Duration> noticed, healed, healed_late;
  for (int cut = 0; cut < Cuts(); ++cut) {
    const int direction = cut % kDirections;
    const int host = kWorkers[cut / kDirections % 2];
    const int other = kWorkers[0] + kWorkers[1] - host;
    SCOPED_TRACE(absl::StrCat("cut ", cut, ", ", kNames[direction], ", of host ", host));
    job.WaitForPushes(host);
    const size_t losses = job.Losses(host);
    ASSERT_THAT(Cut(**network, host, direction), IsOk());
    noticed.push_back(job.WaitForPresence(host, "EVICTED"));
    job.WaitForPushes(other);
    const bool lasts = cut % kLongCut == kLongCut - 1;
    if (lasts) job.WaitForLoss(host, losses + 1);
    ASSERT_THAT(Heal(**network, host, direction), IsOk());
    (lasts ? healed_late : healed).push_back(job.WaitForPushes(host));
    if (HasFailure()) break;
  }
  const uint64_t first = job.Leave(kWorkers[0]);
  const uint64_t counted = first + job.Leave(kWorkers[1]);
  EXPECT_THAT(LinesWith(job.worker(kWorkers[1]).output(), "parameters at"),
              ElementsAre(HasSubstr(absl::StrCat(": -", counted, " to -", counted))));
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0)) << job.server().output();
  EXPECT_THAT(Counters(job.server().output()),
              AllOf(HasSubstr(absl::StrCat(counted, " accepted")), Not(HasSubstr("unbalanced")),
                    Not(HasSubstr("in progress"))));
  std::cout << noticed.size() << " cuts: noticed after p50 " << Quantile(noticed, 0.5) << ", p99 "
            << Quantile(noticed, 0.99) << "; healed after p50 " << Quantile(healed, 0.5) << ", p99 "
            << Quantile(healed, 0.99) << "\n";
  sheet.Count("cuts", noticed.size());
  sheet.Count("pushes", counted);
  sheet.Text("counters", Counters(job.server().output()));
  sheet.Times("noticed_s", noticed);
  sheet.Times("healed_s", healed);
  sheet.Times("healed_after_long_cuts_s", healed_late);
  EXPECT_THAT(sheet.Write(), IsOk());
}

}  // namespace
}  // namespace sluice
