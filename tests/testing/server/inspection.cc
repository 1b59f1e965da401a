#include "tests/testing/server/inspection.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/status.h"

namespace sluice {

std::string Inspect(ReflectionClient& client, const std::string& method,
                    const std::string& request) {
  const auto answer = client.Call("sluice.v1.Inspector/" + method, request);
  EXPECT_THAT(answer, IsOk()) << method << request;
  return answer.ok() ? answer->json : "{}";
}

std::string PathOf(const std::string& list, int index, const std::string& field) {
  return absl::StrCat(list, ".", index, ".", field);
}

std::vector<std::string> NamesInPages(ReflectionClient& client, const std::string& method,
                                      int page_size, const std::string& list,
                                      const std::string& field) {
  std::vector<std::string> names;
  std::string token;
  do {
    const std::string page =
        Inspect(client, method,
                absl::StrFormat(R"({"pageSize": %d, "pageToken": "%s"})", page_size, token));
    for (int i = 0; JsonAt(page, PathOf(list, i, field)) != "absent"; ++i) {
      EXPECT_LT(i, page_size);
      names.push_back(JsonAt(page, PathOf(list, i, field)));
    }
    token = JsonAt(page, "nextPageToken");
  } while (!token.empty());
  return names;
}

}  // namespace sluice
