#include "tests/testing/process/programs.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {

std::string TestPath(const std::string& name) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(::testing::TempDir(), "/", test->test_suite_name(), ".", test->name(), ".",
                      name);
}

Words With(Words words, const Words& flags) {
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

Words ServerProgram(const Words& flags) {
  return With({RunfilePath("server/sluice_server")}, flags);
}

Words TlsFlags(const TlsFiles& files) {
  return {"--tls-cert=" + files.certificate, "--tls-key=" + files.key,
          "--tls-ca=" + files.authority};
}

Standalone::Standalone(const Words& flags)
    : process_(Start(ServerProgram(With(flags, {"--listen=127.0.0.1:0"})))) {
  const auto address = process_->WaitForOutput("listening on (127.0.0.1:[0-9]+)");
  EXPECT_THAT(address, IsOk());
  address_ = address.value_or("");
}

std::string OutputOf(const Words& argv, int code) {
  const auto process = Start(argv);
  EXPECT_THAT(process->Wait(kJob), IsOkAndHolds(code)) << process->output();
  return process->output();
}

}  // namespace sluice
