#include "tools/ping/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMega = 1e6;

double Milliseconds(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }
double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) / kMega; }
uint64_t BytesOf(const PingReport& report) { return report.elements * sizeof(float); }

std::string FactsText(const PingReport& report) {
  const RoundTripTimes& times = report.path.round_trip;
  return absl::StrFormat(
      "server         %s, Sluice %s, %s\n"
      "round trip     least %.3f ms, median %.3f ms, p99 %.3f ms\n"
      "shared memory  %s\n",
      report.address, report.path.server.version, report.tls ? "TLS" : "plaintext",
      Milliseconds(times.least), Milliseconds(times.median), Milliseconds(times.p99),
      report.path.server.shares_memory
          ? "yes: plain tensors of workers here do not go through the connection"
          : "no: all tensors go through the connection");
}

// The fastest push of all connections together.
double FastestPush(const PathReport& path) {
  double fastest = 0;
  for (const PathRate& rate : path.rates) fastest = std::max(fastest, rate.push);
  return fastest;
}

// At least so much of a core's time TLS takes on this machine for the fastest push.
double LeastShareOfTls(const PingReport& report) {
  return report.tls ? FastestPush(report.path) / report.cipher_rate : 0;
}

std::string TlsText(const PingReport& report) {
  if (!report.tls) return "";
  return absl::StrFormat(
      "TLS            takes at least %.0f %% of a core here for the fastest push: a core of "
      "this machine encrypts %.0f MB/s\n",
      100 * LeastShareOfTls(report), report.cipher_rate / kMega);
}

std::string RatesText(const PathReport& path) {
  std::string text = "\nconnections   push MB/s   pull MB/s\n";
  for (const PathRate& rate : path.rates) {
    absl::StrAppendFormat(&text, "%11d %11.1f %11.1f\n", rate.connections, rate.push / kMega,
                          rate.pull / kMega);
  }
  return text;
}

// One line for each encoding: what it costs, and a round with each number of connections.
std::string RoundsText(const PingReport& report) {
  std::string text =
      absl::StrFormat("\na round of %.1f MB: seconds with so many connections\n%-12s %8s %9s %9s",
                      Megabytes(BytesOf(report)), "encoding", "sent MB", "encode s", "decode s");
  for (const PathRate& rate : report.path.rates)
    absl::StrAppendFormat(&text, " %8d", rate.connections);
  auto round = report.recommendation.rounds.begin();
  for (const PricedEncoding& encoding : report.encodings) {
    absl::StrAppendFormat(
        &text, "\n%-12s %8.1f %9.3f %9.3f", encoding.name, Megabytes(encoding.cost.bytes),
        absl::ToDoubleSeconds(encoding.cost.encode), absl::ToDoubleSeconds(encoding.cost.decode));
    for (size_t i = 0; i < report.path.rates.size(); ++i, ++round) {
      absl::StrAppendFormat(&text, " %8.3f", absl::ToDoubleSeconds(round->total));
    }
    if (!encoding.keeps_accuracy) absl::StrAppend(&text, "  costs accuracy");
  }
  return absl::StrCat(text, "\n");
}

std::string RecommendationText(const PingReport& report) {
  const RoundEstimate& best = report.recommendation.best;
  std::string text = absl::StrFormat("\nrecommended: --connections=%d --push-encoding=%s",
                                     best.connections, best.encoding);
  if (report.path.server.shares_memory) {
    absl::StrAppend(&text, "   (the time of a round through shared memory was not measured)");
  } else {
    absl::StrAppendFormat(
        &text, "   (a round of %.1f MB: about %.3f s, of which push %.3f s and pull %.3f s)",
        Megabytes(BytesOf(report)), absl::ToDoubleSeconds(best.total),
        absl::ToDoubleSeconds(best.push), absl::ToDoubleSeconds(best.pull));
  }
  return absl::StrCat(text, "\nReason: ", report.recommendation.why,
                      ".\nWhat top-k and sign cost in accuracy is in common/encoding/README.md; "
                      "they are never recommended.\n");
}

Json JsonOf(const RoundEstimate& round) {
  return {{"connections", round.connections},
          {"push_encoding", round.encoding},
          {"push_s", absl::ToDoubleSeconds(round.push)},
          {"pull_s", absl::ToDoubleSeconds(round.pull)},
          {"round_s", absl::ToDoubleSeconds(round.total)},
          {"keeps_accuracy", round.keeps_accuracy}};
}

Json RatesJson(const PathReport& path) {
  Json rates = Json::array();
  for (const PathRate& rate : path.rates) {
    rates.push_back({{"connections", rate.connections},
                     {"push_bytes_per_s", rate.push},
                     {"pull_bytes_per_s", rate.pull}});
  }
  return rates;
}

Json EncodingsJson(const std::vector<PricedEncoding>& encodings) {
  Json array = Json::array();
  for (const PricedEncoding& encoding : encodings) {
    array.push_back({{"push_encoding", encoding.name},
                     {"bytes", encoding.cost.bytes},
                     {"encode_s", absl::ToDoubleSeconds(encoding.cost.encode)},
                     {"decode_s", absl::ToDoubleSeconds(encoding.cost.decode)},
                     {"keeps_accuracy", encoding.keeps_accuracy}});
  }
  return array;
}

}  // namespace

std::string ReportText(const PingReport& report) {
  return absl::StrCat(FactsText(report), TlsText(report), RatesText(report.path),
                      RoundsText(report), RecommendationText(report));
}

std::string ReportJson(const PingReport& report) {
  Json rounds = Json::array();
  for (const RoundEstimate& round : report.recommendation.rounds) rounds.push_back(JsonOf(round));
  const RoundTripTimes& times = report.path.round_trip;
  const Json json = {{"address", report.address},
                     {"server_version", report.path.server.version},
                     {"tls", report.tls},
                     {"tls_cipher_bytes_per_s", report.cipher_rate},
                     {"tls_least_share_of_core", LeastShareOfTls(report)},
                     {"shares_memory", report.path.server.shares_memory},
                     {"round_trip",
                      {{"least_s", absl::ToDoubleSeconds(times.least)},
                       {"median_s", absl::ToDoubleSeconds(times.median)},
                       {"p99_s", absl::ToDoubleSeconds(times.p99)}}},
                     {"rates", RatesJson(report.path)},
                     {"model_bytes", BytesOf(report)},
                     {"encodings", EncodingsJson(report.encodings)},
                     {"rounds", std::move(rounds)},
                     {"recommended", JsonOf(report.recommendation.best)},
                     {"why", report.recommendation.why}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice
