// Plays every grpcurl command of the first page and of the operator's page, with a client that asks
// for reflection as grpcurl does: in plaintext, on a unix socket and over TLS.

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/recovery.h"
#include "server/rpc/server.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

struct Command {
  std::string address;
  std::string method;
  std::string request = "{}";
};

// The words of a shell command; quotes are taken off.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote == 0 ? c : 0;
    } else if (c == ' ' && quote == 0) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

Command Parse(const std::string& line) {
  const std::vector<std::string> words = WordsOf(line);
  Command command;
  std::vector<std::string> places;
  for (size_t i = 1; i < words.size(); ++i) {
    EXPECT_NE(words[i], "-unix") << line;  // grpcurl 1.9.2 and later do not take it
    if (words[i] == "-d") {
      command.request = words[++i];
    } else if (!absl::StartsWith(words[i], "-")) {
      places.push_back(words[i]);
    }
  }
  EXPECT_EQ(places.size(), 2u) << line;
  command.address = places[0];
  command.method = places[1];
  return command;
}

// The commands in a page: lines that begin with "$ grpcurl", and those within `…`.
std::vector<Command> CommandsIn(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<Command> commands;
  for (std::string line; std::getline(file, line);) {
    const size_t in_text = line.find("`grpcurl -");
    if (absl::StartsWith(line, "$ grpcurl ")) {
      commands.push_back(Parse(line.substr(2)));
    } else if (in_text != std::string::npos) {
      const std::vector<std::string> parts = absl::StrSplit(line.substr(in_text + 1), '`');
      commands.push_back(Parse(parts[0]));
    }
  }
  return commands;
}

std::vector<Command> AllCommands() {
  std::vector<Command> all = CommandsIn("README.md");
  for (Command& command : CommandsIn("server/rpc/operator/README.md")) {
    all.push_back(std::move(command));
  }
  return all;
}

enum class Transport { kTcp, kUnix, kTls };

// A server whose three workers train, with a directory for checkpoints.
class ReadmeCommandsTest : public ::testing::TestWithParam<Transport> {
 protected:
  ReadmeCommandsTest()
      : directory_(*PrivateDirectory::Create()),
        world_(Sync(3), LayoutOf({{"conv1.weight", 150}, {"conv1.bias", 6}})) {
    DurableOptions durable;
    durable.directory = absl::StrCat(::testing::TempDir(), "/readme", static_cast<int>(GetParam()));
    durable_ = *DurableDirectory::Open(durable);
    EXPECT_THAT(Recover(*durable_, world_.shard()), IsOk());
    GrpcServerOptions options;
    options.address.host = "127.0.0.1";
    if (GetParam() == Transport::kUnix) {
      options.address.unix_path = absl::StrCat(directory_->path(), "/server.sock");
    }
    if (GetParam() == Transport::kTls) options.credentials = SourceOf(authority_.Server());
    door_ = *StartGrpcServer(options, {&world_.shard(), durable_.get()});
    world_.Start({"worker-0", "worker-1", "worker-2"});
  }

  ~ReadmeCommandsTest() override { door_->Shutdown(absl::ZeroDuration()); }

  // To the server's address, in the form that grpcurl takes.
  std::shared_ptr<grpc::Channel> Channel() const {
    const std::string address = door_->address().ToString();
    if (GetParam() == Transport::kTls) {
      return TlsChannel(address, authority_.Client({Role::kAdmin}));
    }
    const std::string target = GetParam() == Transport::kUnix
                                   ? absl::StrCat("unix://", door_->address().unix_path)
                                   : address;
    return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  }

  const TestAuthority authority_;
  const std::unique_ptr<PrivateDirectory> directory_;
  ShardWorld world_;
  std::unique_ptr<DurableDirectory> durable_;
  std::unique_ptr<GrpcServer> door_;
};

TEST_P(ReadmeCommandsTest, AllSucceed) {
  ReflectionClient client(Channel());
  for (const Command& command : AllCommands()) {
    EXPECT_THAT(client.Call(command.method, command.request), IsOk()) << command.method;
  }
  EXPECT_EQ(client.version(), "v1");
}

INSTANTIATE_TEST_SUITE_P(Transports, ReadmeCommandsTest,
                         ::testing::Values(Transport::kTcp, Transport::kUnix, Transport::kTls));

TEST(ReadmeTest, HasTheCommandsThatAreExpected) {
  std::vector<std::string> methods;
  for (const Command& command : AllCommands()) methods.push_back(command.method);
  EXPECT_THAT(
      methods,
      ElementsAre("sluice.v1.Inspector/GetServerState", "sluice.v1.Inspector/GetServerState",
                  "sluice.v1.Inspector/ListWorkers", "sluice.v1.Inspector/GetParameter",
                  "sluice.v1.Inspector/ListServers", "sluice.v1.Admin/SetPolicy",
                  "sluice.v1.Admin/SetLearningRate", "sluice.v1.Admin/EvictWorker",
                  "sluice.v1.Admin/SaveCheckpoint", "sluice.v1.Admin/Drain"));
}

}  // namespace
}  // namespace sluice
