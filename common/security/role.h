// The roles of a caller, as its certificate names them. server/rpc/access decides what each may
// call.

#ifndef SLUICE_COMMON_SECURITY_ROLE_H_
#define SLUICE_COMMON_SECURITY_ROLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

enum class Role {
  kWorker = 1,    // trains
  kObserver = 2,  // reads: the Inspector, and sessions that only pull
  kAdmin = 4,     // changes the job: Admin
  kServer = 8,    // is one of several servers of the job: Sequencer
};

// The URI of a role among a certificate's subject alternative names: "sluice:worker",
// "sluice:observer", "sluice:admin" or "sluice:server". And back; absent for any other URI.
std::string RoleUri(Role role);
absl::optional<Role> RoleFromUri(absl::string_view uri);

// A set of roles. A value.
class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(Role role) : bits_(static_cast<int>(role)) {}  // one role is a set of roles

  static constexpr Roles All() {
    return Roles(Role::kWorker) | Role::kObserver | Role::kAdmin | Role::kServer;
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(Role role) const { return (bits_ & static_cast<int>(role)) != 0; }
  constexpr bool Meet(Roles other) const { return (bits_ & other.bits_) != 0; }
  constexpr Roles operator|(Roles other) const { return Roles(bits_ | other.bits_); }
  constexpr bool operator==(Roles other) const { return bits_ == other.bits_; }

  // A text for people: "worker or observer", or "none".
  std::string ToString() const;

 private:
  constexpr explicit Roles(int bits) : bits_(bits) {}

  int bits_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_ROLE_H_
