#include "tests/testing/process/private_network.h"

#include <fstream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

using Words = std::vector<std::string>;

// The router's end of a host's link.
std::string LinkOf(int host) { return absl::StrCat("host", host); }
std::string RouterOf(int host) { return absl::StrCat("10.77.", host + 1, ".1"); }

absl::Status Run(const Words& argv) {
  const auto process = Process::Start(argv);
  if (!process.ok()) return absl::UnavailableError(process.status().message());
  const auto status = (*process)->Wait();
  if (!status.ok()) return absl::UnavailableError(status.status().message());
  if (*status == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("\"", absl::StrJoin(argv, " "), "\" ended with ",
                                             *status, ": ", (*process)->output()));
}

// Each of `commands` is one for ip(8), in words with one space between them.
absl::Status Ip(const Words& prefix, const Words& commands) {
  for (const std::string& command : commands) {
    Words words = prefix;
    words.push_back("ip");
    for (const auto& word : absl::StrSplit(command, ' ')) words.emplace_back(word);
    const absl::Status done = Run(words);
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status Forward() {
  std::ofstream file("/proc/sys/net/ipv4/ip_forward");
  file << "1" << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(
      "cannot write /proc/sys/net/ipv4/ip_forward of a network of our own");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateNetwork>> PrivateNetwork::Make(int hosts) {
  auto network = absl::WrapUnique(new PrivateNetwork());
  absl::Status made = Forward();
  if (made.ok()) made = Ip({}, {"link set lo up"});
  for (int host = 0; made.ok() && host < hosts; ++host) made = network->AddHost();
  if (!made.ok()) return made;
  return network;
}

// Links go with their hosts.
PrivateNetwork::~PrivateNetwork() = default;

absl::Status PrivateNetwork::AddHost() {
  const int host = static_cast<int>(hosts_.size());
  auto holder = Process::Start({"unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"});
  if (!holder.ok()) return absl::UnavailableError(holder.status().message());
  const auto ready = (*holder)->WaitForOutput("ready");
  if (!ready.ok()) return absl::UnavailableError(ready.status().message());
  hosts_.push_back(*std::move(holder));
  const std::string link = LinkOf(host);
  const absl::Status near =
      Ip({}, {absl::StrCat("link add name ", link, " type veth peer name eth0 netns ",
                           hosts_[host]->pid()),
              absl::StrCat("address add ", RouterOf(host), "/24 dev ", link),
              absl::StrCat("link set ", link, " up")});
  if (!near.ok()) return near;
  return Ip(At(host, {}),
            {"link set lo up", absl::StrCat("address add ", AddressOf(host), "/24 dev eth0"),
             "link set eth0 up", absl::StrCat("route add default via ", RouterOf(host))});
}

std::string PrivateNetwork::AddressOf(int host) { return absl::StrCat("10.77.", host + 1, ".2"); }

Words PrivateNetwork::At(int host, const Words& argv) const {
  Words words = {"nsenter", absl::StrCat("--net=/proc/", hosts_[host]->pid(), "/ns/net")};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

absl::Status PrivateNetwork::Cut(int from, int to) {
  return Ip({},
            {absl::StrCat("rule add from ", AddressOf(from), " to ", AddressOf(to), " blackhole")});
}

absl::Status PrivateNetwork::Heal(int from, int to) {
  return Ip({},
            {absl::StrCat("rule del from ", AddressOf(from), " to ", AddressOf(to), " blackhole")});
}

}  // namespace sluice
