// The page's own files, which a genrule puts into the binary.

#ifndef SLUICE_SERVER_WEB_PAGE_PAGE_FILES_H_
#define SLUICE_SERVER_WEB_PAGE_PAGE_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

struct PageFile {
  const char* path;  // "/page.js"
  const char* content_type;
  const char* etag;  // in quotes
  absl::string_view content;
};

const std::vector<PageFile>& PageFiles();

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_PAGE_PAGE_FILES_H_
