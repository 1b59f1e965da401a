// The pages of the Inspector's lists.

#ifndef SLUICE_SERVER_RPC_OPERATOR_PAGE_H_
#define SLUICE_SERVER_RPC_OPERATOR_PAGE_H_

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

inline constexpr uint32_t kMaxPage = 100;
// A page ends before its entries have more bytes, so that each answer stays under 64 KiB: the rest
// is a token with a worker's name. An entry is much smaller.
inline constexpr size_t kMaxPageBytes = 63 << 10;

inline size_t PageSize(uint32_t asked) { return asked == 0 ? kMaxPage : std::min(asked, kMaxPage); }

inline absl::Status ForeignToken(const std::string& token) {
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("page_token \"", Shown(token),
                   "\" does not come from this server; send the next_page_token of its "
                   "last answer, or none for the first page"));
}

// Fills a page until it has `size` entries or kMaxPageBytes.
template <typename Entry>
class Page {
 public:
  Page(size_t size, google::protobuf::RepeatedPtrField<Entry>* entries)
      : size_(size), entries_(*entries) {}

  // False if the page is full; then the entry is not on it.
  bool Add(Entry entry) {
    bytes_ += entry.ByteSizeLong() + kTagAndLength;
    if (entries_.size() == static_cast<int>(size_) || bytes_ > kMaxPageBytes) return false;
    *entries_.Add() = std::move(entry);
    return true;
  }

 private:
  static constexpr size_t kTagAndLength = 4;

  const size_t size_;
  google::protobuf::RepeatedPtrField<Entry>& entries_;
  size_t bytes_ = 0;
};

// Fills a page of a list of `size` entries, entry(i) each, whose page token is the index of the
// first entry. BAD_ARGUMENT if the token is not one of these.
template <typename Request, typename Entry, typename Response, typename Make>
absl::Status FillPage(const Request& request, size_t size,
                      google::protobuf::RepeatedPtrField<Entry>* entries, Response& response,
                      const Make& entry) {
  uint64_t next = 0;
  const std::string& token = request.page_token();
  if (!token.empty() && (!absl::SimpleAtoi(token, &next) || next > size)) {
    return ForeignToken(token);
  }
  Page<Entry> page(PageSize(request.page_size()), entries);
  while (next < size && page.Add(entry(next))) ++next;
  if (next < size) response.set_next_page_token(absl::StrCat(next));
  return absl::OkStatus();
}

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_PAGE_H_
