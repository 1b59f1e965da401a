#include "server/web/page/live_page.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/process_memory.h"
#include "server/web/page/page_files.h"
#include "server/web/page/page_json.h"

namespace sluice {
namespace {

constexpr uint64_t kMostFileBytes = 16 << 20;  // no history is larger

absl::StatusOr<std::string> ReadWhole(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path);
  if (!file.ok()) return file.status();
  if ((*file)->size() > kMostFileBytes) return absl::DataLossError("it is far too large");
  std::string bytes((*file)->size(), '\0');
  const absl::Status read = (*file)->Read(0, absl::MakeSpan(bytes));
  if (!read.ok()) return read;
  return bytes;
}

// No sync: after a crash of the machine the file may be damaged, and then the history is empty.
absl::Status WriteWhole(FileSystem& files, const std::string& path, const std::string& bytes) {
  const std::string incomplete = path + ".new";
  auto file = files.Create(incomplete);
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Append(bytes);
  if (!written.ok()) return written;
  return files.Rename(incomplete, path);
}

HttpResponse FileResponse(const PageFile& file, const std::shared_ptr<const std::string>& body) {
  return {200, file.content_type, body, file.etag};
}

HttpResponse JsonResponse(std::shared_ptr<const std::string> json) {
  return {200, "application/json", std::move(json), ""};
}

}  // namespace

LivePage::LivePage(const LivePageOptions& options) : options_(options) { Load(); }

void LivePage::Load() {
  if (options_.history_file.empty()) return;
  const auto bytes = ReadWhole(*options_.files, options_.history_file);
  if (absl::IsNotFound(bytes.status())) return;
  const absl::MutexLock lock(&mu_);
  const absl::Status read = bytes.ok() ? history_.Decode(*bytes) : bytes.status();
  if (read.ok()) return;
  LOG(WARNING) << "the page's history begins anew, because " << options_.history_file
               << " cannot be read: " << read.message();
}

std::vector<HttpRoute> LivePage::Routes() {
  std::vector<HttpRoute> routes;
  for (const PageFile& file : PageFiles()) {
    HttpRoute route;
    route.path = file.path;
    const auto body = std::make_shared<const std::string>(file.content);
    route.handle = [&file, body](const HttpRequest&) { return FileResponse(file, body); };
    route.open = true;
    routes.push_back(std::move(route));
  }
  routes.push_back({"GET", "/api/state", [this](const HttpRequest&) { return StateResponse(); }});
  routes.push_back(
      {"GET", "/api/history", [this](const HttpRequest&) { return HistoryResponse(); }});
  routes.push_back({"GET", "/api/events", nullptr, &feed_});
  return routes;
}

HttpResponse LivePage::StateResponse() const {
  const absl::MutexLock lock(&mu_);
  if (state_ == nullptr) return HttpText(503, "Nothing has been seen yet; try again.\n");
  return JsonResponse(state_);
}

// All who ask between two rows share a text. It is made without the mutex, so meanwhile a row may
// come; then it is not kept.
HttpResponse LivePage::HistoryResponse() {
  History copy;
  uint64_t rows_taken = 0;
  {
    const absl::MutexLock lock(&mu_);
    if (history_json_ != nullptr) return JsonResponse(history_json_);
    rows_taken = rows_taken_;
    copy = history_;
  }
  auto json = std::make_shared<const std::string>(HistoryJson(copy));
  const absl::MutexLock lock(&mu_);
  if (rows_taken == rows_taken_) history_json_ = json;
  return JsonResponse(std::move(json));
}

void LivePage::Look(absl::Time now, absl::FunctionRef<JobMoment()> get) {
  if (now < next_) return;
  {
    const absl::MutexLock lock(&mu_);
    if (std::exchange(busy_, true)) return;
  }
  next_ = now + kPeriod;
  executor_.Run([this, input = std::make_shared<const JobMoment>(get())] {
    Take(*input);
    const absl::MutexLock lock(&mu_);
    busy_ = false;
  });
}

void LivePage::Show(JobMoment moment) {
  executor_.Run(
      [this, shown = std::make_shared<const JobMoment>(std::move(moment))] { Take(*shown); });
}

void LivePage::End(JobMoment last) {
  Show(std::move(last));
  executor_.Drain();
  file_executor_.Run([this] { Save(); });
  file_executor_.Drain();
}

void LivePage::Take(const JobMoment& input) {
  const uint64_t memory = ReadProcessMemory().resident;
  std::string json;
  {
    const absl::MutexLock lock(&mu_);
    watch_.Look(input, memory, spans_.Take(), history_);
    ++rows_taken_;
    history_json_ = nullptr;
    json = StateJson(input, options_, watch_.workers(), history_);
    state_ = std::make_shared<const std::string>(json);
  }
  feed_.Publish(absl::StrCat("data: ", json, "\n\n"));
  if (input.time - saved_ < kBetweenSaves) return;
  if (saved_ != absl::InfinitePast()) SaveSoon();
  saved_ = input.time;
}

// Unless the disk still has not taken the last one.
void LivePage::SaveSoon() {
  if (saving_.exchange(true)) return;
  file_executor_.Run([this] {
    Save();
    saving_ = false;
  });
}

void LivePage::Save() {
  if (options_.history_file.empty()) return;
  std::string bytes;
  {
    const absl::MutexLock lock(&mu_);
    bytes = history_.Encode();
  }
  const absl::Status written = WriteWhole(*options_.files, options_.history_file, bytes);
  if (!written.ok()) LOG(WARNING) << "the page's history is not saved: " << written.message();
}

}  // namespace sluice
