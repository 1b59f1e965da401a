#include "worker/connection/striped_calls.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/connection/calls_at_once.h"
#include "worker/connection/send_stripe.h"

namespace sluice {
namespace {

using Others = CallsAtOnce::Others;

template <typename Call>
std::function<void(uint32_t)> CancelOf(const std::vector<std::unique_ptr<Call>>& calls) {
  return [&calls](uint32_t server) { calls[server]->Cancel(); };
}

// The transfer of both, which went on at the same time.
Transfer Together(const Transfer& a, const Transfer& b) {
  if (a.bytes == 0 || b.bytes == 0) return a.bytes == 0 ? b : a;
  return {a.bytes + b.bytes, std::max(a.time, b.time)};
}

template <typename Call>
Transfer Together(const std::vector<std::unique_ptr<Call>>& calls) {
  Transfer sum;
  for (const auto& call : calls) sum = Together(sum, call->transfer());
  return sum;
}

// The error of one server. It says which, unless that is the leader.
absl::Status From(uint32_t server, const StripedCallOptions& options, const absl::Status& status) {
  if (status.ok() || server == 0) return status;
  return NamedError(server, options.servers, status);
}

}  // namespace

absl::Status NamedError(uint32_t server, const std::vector<std::string>& servers,
                        const absl::Status& status) {
  absl::Status named(status.code(), absl::StrCat("server ", server, " of ", servers.size(), " at ",
                                                 servers[server], ": ", status.message()));
  status.ForEachPayload([&named](absl::string_view type, const absl::Cord& payload) {
    named.SetPayload(type, payload);
  });
  return named;
}

// ---- Slots ----

namespace {

// Writes a server's part of each slot to the slots of the vector.
void Scatter(const PulledSlots& part, const Stripes& stripes, uint32_t stripe, float* slots) {
  const char* from = part.bytes.data();
  for (size_t slot = 0; slot < part.names.size(); ++slot) {
    const StripeSpan<float> to(stripes, stripe, 0, {slots + slot * stripes.size(), stripes.size()});
    to.ForEachPiece(0, to.size(), [&from](absl::Span<float> piece) {
      std::memcpy(piece.data(), from, piece.size() * sizeof(float));
      from += piece.size() * sizeof(float);
    });
  }
}

}  // namespace

absl::StatusOr<absl::optional<PulledSlots>> JoinSlots(
    const std::vector<absl::StatusOr<PulledSlots>>& parts, const StripedCallOptions& options) {
  bool is_one_step = true;
  for (uint32_t stripe = 0; stripe < parts.size(); ++stripe) {
    const absl::Status& status = parts[stripe].status();
    if (!status.ok()) return stripe == 0 ? status : NamedError(stripe, options.servers, status);
    is_one_step = is_one_step && parts[stripe]->step == parts[0]->step;
    const bool is_empty = options.stripes.SizeOf(stripe) == 0;  // and has no slots
    if (is_empty || parts[stripe]->names == parts[0]->names) continue;
    return absl::InternalError(absl::StrCat("server ", stripe, " has other slots than server 0"));
  }
  if (!is_one_step) return absl::optional<PulledSlots>();
  PulledSlots joined = {parts[0]->step, parts[0]->optimizer_steps, parts[0]->names};
  joined.bytes.resize(joined.names.size() * options.stripes.size() * sizeof(float));
  for (uint32_t stripe = 0; stripe < parts.size(); ++stripe) {
    Scatter(*parts[stripe], options.stripes, stripe, reinterpret_cast<float*>(joined.bytes.data()));
  }
  return absl::optional<PulledSlots>(std::move(joined));
}

// ---- Push ----

namespace {

class StripedPush final : public OutgoingPush {
 public:
  StripedPush(std::vector<std::unique_ptr<OutgoingPush>> pushes, const StripedCallOptions& options)
      : options_(options),
        pushes_(std::move(pushes)),
        ended_(pushes_.size(), 0),
        calls_(*options.threads, options.stripes.count(), options.patience, CancelOf(pushes_)) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    return SendEach([&](uint32_t server, OutgoingPush& push) {
      const auto stripe = SharedStripe::Of(options_.stripes, server, offset, part);
      return SendStripe(stripe, stripe.span.begin(), stripe.span.end(), push);
    });
  }

  bool SendEncoded(const EncodedChunk& /*chunk*/, uint64_t /*taken*/) override {
    refused_ = absl::InternalError("an encoded chunk is in no stripe; send it by SendEach()");
    open_ = false;
    return false;
  }

  // A call to another server ends early if that finds an error. The leader judges the push, so
  // it gets its own stripe whole all the same.
  bool SendEach(absl::FunctionRef<bool(uint32_t, OutgoingPush&)> send) override {
    if (!open_) return false;
    const absl::Status sent = calls_.Run(Others::kGoOn, [&](uint32_t server) {
      if (ended_[server] == 0) ended_[server] = send(server, *pushes_[server]) ? 0 : 1;
      const bool goes_on = server > 0 || ended_[server] == 0;
      return goes_on ? absl::OkStatus() : absl::CancelledError("the call has ended");
    });
    open_ = sent.ok();
    return open_;
  }

  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    if (!refused_.ok()) return refused_;
    PushOutcome outcome;
    PushSummary of_stripe = summary;
    of_stripe.running_means = nullptr;  // they count the whole vector's elements
    of_stripe.options = nullptr;
    of_stripe.clip_norm.reset();
    const absl::Status finished = calls_.Run(Others::kEnd, [&](uint32_t server) {
      auto answer = pushes_[server]->Finish(server == 0 ? summary : of_stripe);
      if (!answer.ok()) return From(server, options_, answer.status());
      if (server == 0) outcome = *answer;
      return From(server, options_, CheckAnswer(server, *answer));
    });
    if (!finished.ok()) return IfLost(finished);
    return outcome;
  }

  void Cancel() override {
    for (const auto& push : pushes_) push->Cancel();
  }

  bool has_lanes() const override {
    return std::any_of(pushes_.begin(), pushes_.end(),
                       [](const auto& push) { return push->has_lanes(); });
  }

  Transfer transfer() const override { return Together(pushes_); }

 private:
  // The first server, which may have no lanes, tells what another one misses. If a lane there may
  // have lost it, the gradient is not at fault, and the push may be repeated.
  absl::Status IfLost(const absl::Status& error) const {
    if (!has_lanes() || ReasonOf(error) != Reason::kBadChunk) return error;
    return absl::UnavailableError(absl::StrCat("a part of the push was lost: ", error.message()));
  }

  absl::Status CheckAnswer(uint32_t server, const PushOutcome& answer) const {
    if ((answer.disposition == Disposition::kPartTaken) != (server > 0)) {
      return absl::InternalError(absl::StrCat(
          "the answer to a push is \"", DispositionName(answer.disposition), "\", expected ",
          server == 0 ? "what became of it" : "that the part was taken"));
    }
    if (server == 0 || ended_[server] == 0) return absl::OkStatus();
    return absl::UnavailableError("it took its part of a push before that was sent");
  }

  const StripedCallOptions options_;
  const std::vector<std::unique_ptr<OutgoingPush>> pushes_;
  std::vector<char> ended_;  // whether a push has ended before all was sent
  bool open_ = true;
  absl::Status refused_;
  CallsAtOnce calls_;
};

// ---- Pull ----

// What is wrong with the header that another server has sent than the first.
absl::Status CheckSameStep(const PullHeader& first, const PullHeader& other) {
  const std::string difference =
      absl::StrCat("it sent step ", other.step.value(), " of incarnation ",
                   other.incarnation.value(), other.not_modified ? ", not modified" : "",
                   ", and the first server step ", first.step.value(), " of incarnation ",
                   first.incarnation.value(), first.not_modified ? ", not modified" : "");
  if (other.incarnation != first.incarnation) return absl::UnavailableError(difference);
  const bool same = first.step == other.step && first.not_modified == other.not_modified;
  return same ? absl::OkStatus() : absl::InternalError(difference);
}

// The first server's header, if all servers have sent the same step.
absl::StatusOr<PullHeader> HeaderOf(const std::vector<PullHeader>& headers,
                                    const StripedCallOptions& options) {
  for (uint32_t server = 1; server < headers.size(); ++server) {
    const absl::Status same = CheckSameStep(headers[0], headers[server]);
    if (!same.ok()) return From(server, options, same);
  }
  return headers[0];
}

// Reads what one server has sent of `all`.
using ReadPart = std::function<absl::StatusOr<PullHeader>(PendingPull& pull, uint32_t server,
                                                          absl::Span<float> all)>;

class StripedPull final : public PendingPull {
 public:
  // `overwritten` may be null.
  StripedPull(std::vector<std::unique_ptr<PendingPull>> pulls, ReadPart read,
              std::shared_ptr<std::atomic<bool>> overwritten, const StripedCallOptions& options)
      : options_(options),
        pulls_(std::move(pulls)),
        read_(std::move(read)),
        overwritten_(std::move(overwritten)),
        headers_(pulls_.size()),
        calls_(*options.threads, options.stripes.count(), options.patience, CancelOf(pulls_)) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& to) override {
    const auto all = to.OnePiece(0, to.size());
    if (!all.has_value()) {
      return absl::InternalError("what several servers send is read into one piece of memory");
    }
    const absl::Status read = calls_.Run(Others::kGoOn, [&](uint32_t server) {
      const auto header = read_(*pulls_[server], server, *all);
      if (header.ok()) headers_[server] = *header;
      return From(server, options_, header.status());
    });
    if (overwritten_ != nullptr) *overwritten_ = absl::IsDeadlineExceeded(read) && wrote();
    if (!read.ok()) return read;
    return HeaderOf(headers_, options_);
  }

  void Cancel() override {
    for (const auto& pull : pulls_) pull->Cancel();
  }

  bool wrote() const override {
    return std::any_of(pulls_.begin(), pulls_.end(),
                       [](const auto& pull) { return pull->wrote(); });
  }

  Transfer transfer() const override { return Together(pulls_); }

 private:
  const StripedCallOptions options_;
  const std::vector<std::unique_ptr<PendingPull>> pulls_;
  const ReadPart read_;
  const std::shared_ptr<std::atomic<bool>> overwritten_;
  std::vector<PullHeader> headers_;
  CallsAtOnce calls_;
};

// The runs of `all` that a server sends, one after the other.
absl::StatusOr<PullHeader> ReadRuns(PendingPull& pull, const std::vector<RowPlaces::Run>& runs,
                                    absl::Span<float> all) {
  uint64_t size = 0;
  for (const RowPlaces::Run& run : runs) size += run.size;
  std::vector<float> own(size);
  auto header = pull.Read(absl::MakeSpan(own));
  if (!header.ok()) return header;
  auto from = own.begin();
  for (const RowPlaces::Run& run : runs) {
    std::copy_n(from, run.size, all.begin() + static_cast<ptrdiff_t>(run.begin));
    from += static_cast<ptrdiff_t>(run.size);
  }
  return header;
}

// ---- Offer ----

class StripedOffer final : public PendingOffer {
 public:
  StripedOffer(std::vector<std::unique_ptr<PendingOffer>> offers, const StripedCallOptions& options)
      : options_(options),
        offers_(std::move(offers)),
        calls_(*options.threads, options.stripes.count(), options.patience, CancelOf(offers_)) {}

  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) override {
    const auto vector = parameters.OnePiece(0, parameters.size());
    if (!vector.has_value()) return absl::InternalError("a stripe cannot be striped again");
    InitializeOutcome outcome;
    const absl::Status sent = calls_.Run(Others::kEnd, [&](uint32_t server) {
      const StripeSpan<const float> stripe(options_.stripes, server, 0, *vector);
      const auto answer = offers_[server]->Send(stripe);
      if (server == 0 && answer.ok()) outcome = *answer;
      return From(server, options_, answer.status());
    });
    if (!sent.ok()) return sent;
    return outcome;
  }

  void Cancel() override {
    for (const auto& offer : offers_) offer->Cancel();
  }

 private:
  const StripedCallOptions options_;
  const std::vector<std::unique_ptr<PendingOffer>> offers_;
  CallsAtOnce calls_;
};

}  // namespace

std::unique_ptr<OutgoingPush> JoinPushes(std::vector<std::unique_ptr<OutgoingPush>> pushes,
                                         const StripedCallOptions& options) {
  return std::make_unique<StripedPush>(std::move(pushes), options);
}

std::unique_ptr<PendingPull> JoinPulls(std::vector<std::unique_ptr<PendingPull>> pulls,
                                       std::shared_ptr<std::atomic<bool>> overwritten,
                                       const StripedCallOptions& options) {
  const auto read = [stripes = options.stripes](PendingPull& pull, uint32_t server,
                                                absl::Span<float> all) {
    return pull.Read(StripeSpan<float>(stripes, server, 0, all));
  };
  return std::make_unique<StripedPull>(std::move(pulls), read, std::move(overwritten), options);
}

RowPlaces::RowPlaces(const std::vector<RowIds>& rows, const std::vector<RowsOfServer>& split,
                     const std::vector<TableSpec>& tables)
    : of_server(split.size()) {
  std::vector<Run> all;
  uint64_t begin = 0;
  for (const RowIds& of_table : rows) {
    const uint64_t width = tables[of_table.table].width;
    for (size_t i = 0; i < of_table.ids.size(); ++i) {
      all.push_back({begin, width});
      begin += width;
    }
  }
  for (size_t server = 0; server < split.size(); ++server) {
    for (const uint64_t place : split[server].places) of_server[server].push_back(all[place]);
  }
}

std::unique_ptr<PendingPull> JoinRowPulls(std::vector<std::unique_ptr<PendingPull>> pulls,
                                          RowPlaces places, const StripedCallOptions& options) {
  auto read = [places = std::move(places)](PendingPull& pull, uint32_t server,
                                           absl::Span<float> all) {
    return ReadRuns(pull, places.of_server[server], all);
  };
  return std::make_unique<StripedPull>(std::move(pulls), std::move(read), nullptr, options);
}

std::unique_ptr<PendingOffer> JoinOffers(std::vector<std::unique_ptr<PendingOffer>> offers,
                                         const StripedCallOptions& options) {
  return std::make_unique<StripedOffer>(std::move(offers), options);
}

}  // namespace sluice
