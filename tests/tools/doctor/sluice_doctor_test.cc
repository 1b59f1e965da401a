// What sluice_doctor says of real servers.

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/process/wall_clock.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// What the doctor prints. This machine may have faults of its own, so the exit code is not looked
// at.
std::string Examined(const Words& flags) {
  const auto doctor = Start(With({RunfilePath("tools/doctor/sluice_doctor")}, flags));
  EXPECT_THAT(doctor->Wait(kJob), IsOk());
  return doctor->output();
}

std::string TokenFile() {
  std::string path = TestPath("token");
  std::ofstream(path) << "secret\n";
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  return "--token-file=" + path;
}

class SluiceDoctorTlsTest : public ::testing::Test {
 protected:
  Words Files(const Credentials& credentials, const std::string& name) const {
    return TlsFlags(WriteCredentials(credentials, TestPath(name)));
  }
  Words Caller(Role role) const { return Files(authority_.Client({role}), "caller"); }

  const TestAuthority authority_;
};

TEST(SluiceDoctorTest, TellsVersionAndClockOfAServer) {
  const Standalone server({"--workers=1"});
  EXPECT_THAT(Examined({server.flag()}),
              AllOf(HasSubstr(absl::StrCat("ok       server: ", server.address(),
                                           " answers, in plaintext\n")),
                    ContainsRegex("ok       version: the server runs Sluice [0-9.]+ \\(revision 4 "
                                  "of the protocol\\), as this machine does\n"),
                    HasSubstr("ok       server's clock: within 5s of this machine's\n")));
}

TEST(SluiceDoctorTest, SaysThatAServerWantsATokenOrAnother) {
  const Standalone server({"--workers=1", TokenFile()});
  EXPECT_THAT(Examined({server.flag()}),
              HasSubstr("wrong    access: the server asks for a token, and none was given"));
  EXPECT_THAT(Examined({server.flag(), TokenFile()}),
              AllOf(HasSubstr("ok       version:"), Not(HasSubstr("access"))));
  std::ofstream(TestPath("token")) << "another\n";
  EXPECT_THAT(Examined({server.flag(), "--token-file=" + TestPath("token")}),
              HasSubstr("wrong    access: the server refuses the token in "));
}

TEST(SluiceDoctorTest, SeesAClockThatIsWrong) {
  WallClock clock(TestPath("clock"));
  clock.Set(absl::Hours(3));
  const auto server =
      Process::Start(ServerProgram({"--workers=1", "--listen=127.0.0.1:0"}), clock.environment());
  ASSERT_THAT(server, IsOk());
  const auto address = (*server)->WaitForOutput("listening on (127.0.0.1:[0-9]+)");
  ASSERT_THAT(address, IsOk());
  EXPECT_THAT(
      Examined({"--server=" + *address}),
      ContainsRegex("warning  server's clock: it is (3h|3h0m[0-9]+s|2h59m[0-9]+s) ahead of"));
}

TEST_F(SluiceDoctorTlsTest, TellsWhatTheCertificateIsForAndWhetherTheServerTakesIt) {
  const Standalone server(With({"--workers=1"}, Files(authority_.Server(), "server")));
  EXPECT_THAT(Examined(With({server.flag()}, Caller(Role::kWorker))),
              AllOf(HasSubstr(" answers, over TLS\n"), HasSubstr("ok       version:"),
                    HasSubstr("ok       certificate's purpose: it is for a caller with the role "
                              "worker\n"),
                    HasSubstr("warning  certificate's time: 0.0 days left")));
  EXPECT_THAT(
      Examined(With({server.flag()}, Caller(Role::kAdmin))),
      AllOf(HasSubstr("wrong    access: "), HasSubstr("needs the role worker or observer")));
}

TEST_F(SluiceDoctorTlsTest, SaysThatAServerWantsTlsOrHasNone) {
  const Standalone secure(With({"--workers=1"}, Files(authority_.Server(), "server")));
  EXPECT_THAT(Examined({secure.flag()}),
              HasSubstr("wrong    server: the server speaks TLS, and no certificate was given"));
  const Standalone plain({"--workers=1"});
  EXPECT_THAT(Examined(With({plain.flag()}, Caller(Role::kWorker))),
              HasSubstr("wrong    server: the server speaks no TLS; leave out --tls-cert"));
}

TEST_F(SluiceDoctorTlsTest, NamesTheHostsOfACertificateThatIsForOthers) {
  const auto server = Start(ServerProgram(With({"--workers=1", "--listen=127.0.0.2:0"},
                                               Files(authority_.Server({"node1"}), "server"))));
  const auto address = server->WaitForOutput("listening on (127.0.0.2:[0-9]+)");
  ASSERT_THAT(address, IsOk());
  EXPECT_THAT(
      Examined(With({"--server=" + *address}, Caller(Role::kWorker))),
      HasSubstr("wrong    server: the server's certificate is for localhost, 127.0.0.1, ::1, "
                "node1, not for 127.0.0.2;"));
}

TEST_F(SluiceDoctorTlsTest, SaysThatAnAuthorityIsNotTrusted) {
  const Standalone server(With({"--workers=1"}, Files(authority_.Server(), "server")));
  const Words stranger = Files(TestAuthority().Client({Role::kWorker}), "stranger");
  EXPECT_THAT(Examined(With({server.flag()}, stranger)),
              AllOf(HasSubstr("wrong    server: TLS fails ("),
                    HasSubstr("does --tls-ca name the authority of the server's certificate")));
}

}  // namespace
}  // namespace sluice
