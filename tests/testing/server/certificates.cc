#include "tests/testing/server/certificates.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

Validity Around(absl::Time time) { return {time - absl::Hours(1), time + absl::Hours(1)}; }

// Whole at every moment, as a careful operator replaces files.
void WriteWhole(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  std::ofstream(draft, std::ios::binary) << text;
  EXPECT_EQ(chmod(draft.c_str(), 0600), 0);
  std::filesystem::rename(draft, path);
}

}  // namespace

TestAuthority::TestAuthority() {
  const absl::Time now = absl::Now();
  auto made = CertificateAuthority::Create({now - absl::Hours(48), now + absl::Hours(48)});
  EXPECT_TRUE(made.ok()) << made.status();
  authority_ = *std::move(made);
}

CertificateOrder TestAuthority::OrderOfServer() {
  CertificateOrder order;
  order.name = "test server";
  order.hosts = {"localhost", "127.0.0.1", "::1"};
  order.validity = Around(absl::Now());
  return order;
}

Credentials TestAuthority::Server(const std::vector<std::string>& hosts) const {
  CertificateOrder order = OrderOfServer();
  order.hosts.insert(order.hosts.end(), hosts.begin(), hosts.end());
  return Issue(order);
}

Credentials TestAuthority::ServerOfSeveral() const {
  CertificateOrder order = OrderOfServer();
  order.uris = {RoleUri(Role::kServer)};
  return Issue(order);
}

Credentials TestAuthority::Client(const std::vector<Role>& roles) const {
  CertificateOrder order;
  order.name = "test client";
  for (const Role role : roles) order.uris.push_back(RoleUri(role));
  order.validity = Around(absl::Now());
  return Issue(order);
}

Credentials TestAuthority::ExpiredClient(const std::vector<Role>& roles) const {
  CertificateOrder order;
  order.name = "expired client";
  for (const Role role : roles) order.uris.push_back(RoleUri(role));
  order.validity = Around(absl::Now() - absl::Hours(24));
  return Issue(order);
}

Credentials TestAuthority::Issue(const CertificateOrder& order) const {
  auto issued = authority_->Issue(order);
  EXPECT_TRUE(issued.ok()) << issued.status();
  return issued.value_or(Credentials());
}

TlsFiles WriteCredentials(const Credentials& credentials, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const TlsFiles files = {folder + "/cert.pem", folder + "/key.pem", folder + "/ca.pem"};
  WriteWhole(files.certificate, credentials.certificate);
  WriteWhole(files.key, credentials.key);
  WriteWhole(files.authority, credentials.authority);
  return files;
}

}  // namespace sluice
