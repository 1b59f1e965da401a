#include "server/durable/this_server.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace sluice {

std::string ThisServer(StripePlace place, const std::string& job_id) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::string name = absl::StrCat("process ", getpid(), " on ", host);
  if (place.stripes > 1) {
    absl::StrAppend(&name, ", server ", place.stripe, " of ", place.stripes);
  }
  if (!job_id.empty()) {
    absl::StrAppend(&name, place.stripes > 1 ? " of job " : ", of job ", job_id);
  }
  return name;
}

}  // namespace sluice
