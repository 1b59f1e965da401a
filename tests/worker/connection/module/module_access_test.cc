// Who may enter a model server, and how much one call may carry.

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/net/address.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"
#include "worker/connection/module/module_host.h"
#include "worker/connection/module/module_link.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Gives back what it gets, and texts twice.
class Echo final : public ModuleSession {
 public:
  ModulePlace place() const override { return {0, 1, 7}; }
  absl::StatusOr<PlainTensor> Forward(ForwardCall call) override { return call.inputs[0]; }
  absl::StatusOr<std::vector<PlainTensor>> Backward(uint64_t, PlainTensor gradient) override {
    return std::vector<PlainTensor>{std::move(gradient)};
  }
  absl::StatusOr<NamedTensors> Gradients(const std::vector<std::string>& parameters) override {
    return NamedTensors{parameters, std::vector<PlainTensor>(parameters.size())};
  }
  absl::StatusOr<MethodValues> Call(MethodCall call) override {
    call.arguments.plain += call.arguments.plain;
    return call.arguments;
  }
  absl::Status DropGradient() override { return absl::OkStatus(); }
  absl::StatusOr<RoundReport> Step(uint32_t, absl::optional<float>) override {
    return RoundReport();
  }
  absl::Status Leave(bool) override { return absl::OkStatus(); }
};

absl::StatusOr<std::unique_ptr<ModuleHost>> StartHost(const ModuleHostOptions& options) {
  return ModuleHost::Start(
      options, [](const std::string&) -> absl::StatusOr<std::unique_ptr<ModuleSession>> {
        return std::make_unique<Echo>();
      });
}

ModuleHostOptions OnLoopback() {
  ModuleHostOptions options;
  options.address = ParseAddress("127.0.0.1:0").value();
  return options;
}

ModuleLinkOptions TrainerOf(const ModuleHost& host) {
  ModuleLinkOptions options;
  options.address = host.address().ToString();
  options.connect_timeout = absl::Seconds(5);
  options.trainer = "a";
  return options;
}

TEST(ModuleAccessTest, WithATokenOnlyThoseWhoKnowItMayEnter) {
  ModuleHostOptions options = OnLoopback();
  options.token = "secret";
  const auto host = StartHost(options).value();
  ModuleLinkOptions trainer = TrainerOf(*host);
  EXPECT_THAT(EnterModule(trainer), IsError(Reason::kBadToken, HasSubstr("no job token")));
  trainer.token = "secre";
  EXPECT_THAT(EnterModule(trainer), IsError(Reason::kBadToken, testing::_));
  trainer.token = "secret";
  const auto entered = EnterModule(trainer);
  ASSERT_THAT(entered, IsOk());
  EXPECT_EQ((*entered)->place().pushes_before, 7u);
}

TEST(ModuleAccessTest, UnderTlsATrainerNeedsTheRoleOfAWorker) {
  const TestAuthority authority;
  ModuleHostOptions options = OnLoopback();
  options.credentials = SourceOf(authority.Server());
  const auto host = StartHost(options).value();
  ModuleLinkOptions trainer = TrainerOf(*host);
  trainer.credentials = SourceOf(authority.Client({Role::kWorker}));
  EXPECT_THAT(EnterModule(trainer), IsOk());
  trainer.credentials = SourceOf(authority.Client({Role::kObserver, Role::kAdmin}));
  EXPECT_THAT(EnterModule(trainer), IsError(Reason::kWrongRole, HasSubstr("sluice:worker")));
}

TEST(ModuleAccessTest, UnderTlsNobodyEntersWithoutACertificateOfTheAuthority) {
  const TestAuthority authority;
  ModuleHostOptions options = OnLoopback();
  options.credentials = SourceOf(authority.Server());
  const auto host = StartHost(options).value();
  ModuleLinkOptions trainer = TrainerOf(*host);
  trainer.connect_timeout = absl::Seconds(1);
  EXPECT_THAT(EnterModule(trainer), HasCode(absl::StatusCode::kUnavailable, testing::_));
  trainer.credentials = SourceOf(TestAuthority().Client({Role::kWorker}));
  EXPECT_THAT(EnterModule(trainer), HasCode(absl::StatusCode::kUnavailable, testing::_));
}

TEST(ModuleAccessTest, AnAddressThatIsInUseIsTold) {
  const auto host = StartHost(OnLoopback()).value();
  ModuleHostOptions again;
  again.address = host->address();
  EXPECT_THAT(StartHost(again),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("cannot listen on 127.0.0.1:")));
}

TEST(ModuleAccessTest, AUnixSocketThatIsInUseIsNotTakenAway) {
  const auto directory = PrivateDirectory::Create().value();
  ModuleHostOptions options;
  options.address = ParseAddress("unix:" + directory->path() + "/host.sock").value();
  const auto host = StartHost(options).value();
  EXPECT_THAT(StartHost(options),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("another process listens there")));
  EXPECT_THAT(EnterModule(TrainerOf(*host)), IsOk());
}

TEST(ModuleAccessTest, SaysThatThereIsNoModelServer) {
  const auto directory = PrivateDirectory::Create().value();
  ModuleLinkOptions trainer;
  trainer.address = "unix:" + directory->path() + "/nobody.sock";
  trainer.connect_timeout = absl::ZeroDuration();
  EXPECT_THAT(EnterModule(trainer),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("no model server at unix:")));
}

TEST(ModuleAccessTest, TextsThatFillMoreThanAMessageAreRefusedAndTheCallGoesOn) {
  const auto host = StartHost(OnLoopback()).value();
  const auto trainer = EnterModule(TrainerOf(*host)).value();
  const auto call = [&](size_t bytes) {
    MethodCall call;
    call.method = "method";
    call.arguments.plain = std::string(bytes, 'x');
    return trainer->Call(std::move(call));
  };
  const auto is_refused = IsError(Reason::kBadArgument, HasSubstr("texts and names"));
  EXPECT_THAT(call(size_t{65} << 20), is_refused);  // by the trainer
  EXPECT_THAT(call(size_t{40} << 20), is_refused);  // by the model server, as its answer is larger
  EXPECT_EQ(call(3).value().plain, "xxxxxx");
}

TEST(ModuleAccessTest, EachGradientMayBeNamedOnce) {
  const auto host = StartHost(OnLoopback()).value();
  const auto trainer = EnterModule(TrainerOf(*host)).value();
  EXPECT_THAT(
      trainer->Gradients({"a", "b", "a"}),
      IsError(Reason::kBadArgument, HasSubstr("the gradient of \"a\" was asked for twice")));
}

}  // namespace
}  // namespace sluice
