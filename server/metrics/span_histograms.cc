#include "server/metrics/span_histograms.h"

#include <string>
#include <utility>

#include "server/metrics/families.h"

namespace sluice {
namespace {

// Seconds, from what a small step takes to what a stalled one does.
const prometheus::Histogram::BucketBoundaries& Bounds() {
  static const auto* const bounds = new prometheus::Histogram::BucketBoundaries{
      1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025,
      0.05, 0.1,    0.25, 0.5,  1,      2.5,  5,    10,     30,   60};
  return *bounds;
}

constexpr std::pair<ServerSpan, const char*> kParts[] = {{ServerSpan::kWait, "wait"},
                                                         {ServerSpan::kAccumulate, "accumulate"},
                                                         {ServerSpan::kApply, "apply"},
                                                         {ServerSpan::kPublish, "publish"},
                                                         {ServerSpan::kEncode, "encode"}};

prometheus::Family<prometheus::Histogram>& FamilyIn(prometheus::Registry& registry,
                                                    const char* name, const char* help) {
  const prometheus::ClientMetric::Label server = ServerLabel();
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Labels({{server.name, server.value}})
      .Register(registry);
}

}  // namespace

SpanHistograms::SpanHistograms() {
  const auto place = [this](ServerSpan span) -> prometheus::Histogram*& {
    return of_span_[static_cast<size_t>(span)];
  };
  place(ServerSpan::kStep) =
      &FamilyIn(registry_, "sluice_step_seconds", "Time from one step to the next.")
           .Add({}, Bounds());
  auto& parts = FamilyIn(registry_, "sluice_step_part_seconds", "Time of each part of a step.");
  for (const auto& [span, name] : kParts) place(span) = &parts.Add({{"part", name}}, Bounds());
  place(ServerSpan::kJournalSync) =
      &FamilyIn(registry_, "sluice_journal_sync_seconds", "Time of each sync of the journal.")
           .Add({}, Bounds());
}

}  // namespace sluice
