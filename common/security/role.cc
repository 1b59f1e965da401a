#include "common/security/role.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

constexpr absl::string_view kScheme = "sluice:";
constexpr Role kRoles[] = {Role::kWorker, Role::kObserver, Role::kAdmin, Role::kServer};

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kObserver:
      return "observer";
    case Role::kAdmin:
      return "admin";
    case Role::kServer:
      return "server";
  }
  return "";
}

}  // namespace

std::string RoleUri(Role role) { return absl::StrCat(kScheme, Name(role)); }

absl::optional<Role> RoleFromUri(absl::string_view uri) {
  for (const Role role : kRoles) {
    if (uri == RoleUri(role)) return role;
  }
  return absl::nullopt;
}

std::string Roles::ToString() const {
  std::vector<absl::string_view> names;
  for (const Role role : kRoles) {
    if (Has(role)) names.push_back(Name(role));
  }
  return names.empty() ? "none" : absl::StrJoin(names, " or ");
}

}  // namespace sluice
