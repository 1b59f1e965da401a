// The part of World that offers initial parameters.

#include <cmath>
#include <utility>

#include "common/base/error.h"
#include "tests/simulation/world.h"

namespace sluice {

void World::Initialize(SessionId session, const Values& parameters) {
  Begin([&] { return absl::StrCat("session ", session.value(), " offers parameters"); });
  Offer({MakeOffer(session, parameters)});
  End();
}

void World::InitializeTwice(SessionId one, SessionId other, const Values& parameters) {
  Begin([&] {
    return absl::StrCat("sessions ", one.value(), " and ", other.value(), " offer parameters");
  });
  Values others = parameters;
  for (float& element : others) element += 1;
  Offer({MakeOffer(one, parameters), MakeOffer(other, others)});
  End();
}

void World::InitializeInVain(SessionId session, const Values& parameters) {
  static constexpr const char* kFaults[] = {"none", "NaN", "a gap", "a broken stream"};
  SimulatedOffer offer = MakeOffer(session, parameters);
  offer.server = servers_->Below(servers_->count());
  offer.fault = static_cast<OfferFault>(1 + servers_->Below(3));
  Begin([&] {
    return absl::StrCat("session ", session.value(), " offers parameters, but server ",
                        offer.server, " gets ", kFaults[static_cast<int>(offer.fault)]);
  });
  Offer({offer});
  End();
}

SimulatedOffer World::MakeOffer(SessionId session, const Values& parameters) {
  SimulatedOffer offer;
  offer.header.session = session;
  offer.header.attempt = ++attempts_[session.value()];
  offer.parameters = parameters;
  twins_.Clear(&offer.parameters);
  const ModelWorker* const worker = oracle_->workers().Of(session.value());
  if (worker == nullptr) offer.expected = Reason::kUnknownSession;
  if (worker != nullptr && worker->observer) offer.expected = Reason::kNotAWorker;
  if (oracle_->draining()) offer.expected = Reason::kDraining;
  return offer;
}

void World::Offer(const std::vector<SimulatedOffer>& offers) {
  const bool first = !oracle_->initialized();
  for (const SimulatedOffer& made : offers) {
    const auto offer = std::make_shared<SimulatedOffer>(made);
    offers_.push_back(offer);
    servers_->Later([this, offer, first] { OfferToShard(offer, first); });
    for (uint32_t server = 1; server < servers_->count(); ++server) {
      const bool needed = offer->fault == OfferFault::kNone || offer->server == server;
      if (needed || servers_->Percent(70)) {
        servers_->Later([this, offer, server] { OfferToReplica(offer, server); });
      } else {
        offer->late.push_back(server);
      }
    }
  }
  servers_->Settle();
  for (const auto& offer : offers_) {
    if (ok()) EndOffer(offer);
  }
  offers_.clear();
}

void World::OfferToShard(const OfferPtr& offer, bool first) {
  auto start = shard().store().BeginInitialize(offer->header.session, offer->header.attempt);
  ExpectReason(start.status(), offer->expected);
  if (!start.ok()) return;
  const bool alone = offers_.size() == 1;
  if (alone) Expect("a first offer", start->parameters != nullptr, first);
  if (start->parameters != nullptr) TakeOffer(offer, 0, std::move(start->parameters));
}

void World::OfferToReplica(const OfferPtr& offer, uint32_t server) {
  const auto start = [this, offer, server](absl::StatusOr<std::unique_ptr<PendingPush>> part) {
    --offer->waiting;
    if (part.ok()) TakeOffer(offer, server, *std::move(part));
  };
  ++offer->waiting;
  offer->waits[server] = servers_->replica(server).calls().BeginPush(offer->header, start);
}

// A part may be sent. Then it comes at some time.
void World::TakeOffer(const OfferPtr& offer, uint32_t server, std::unique_ptr<PendingPush> part) {
  const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(std::move(part));
  if (server == 0) offer->begun = true;
  if (offer->over && !interrupted())
    Fail(absl::StrCat("server ", server, " admits an offer that is over"));
  servers_->Later([this, offer, server, shared] {
    const bool faulty = offer->fault != OfferFault::kNone && offer->server == server;
    Values sent = servers_->PartOf(offer->parameters, 0, server);
    if (faulty && offer->fault == OfferFault::kNotFinite) sent[0] = NAN;
    if (faulty && offer->fault == OfferFault::kGap) sent.pop_back();
    absl::Status added = (*shared)->Add(ChunkOf(0, sent));
    const bool breaks = faulty && offer->fault == OfferFault::kBroken;
    if (server > 0) {
      if (!breaks)
        servers_->replica(server).calls().EndPush(std::move(*shared), added).IgnoreError();
    } else if (breaks || !added.ok()) {
      shard().store().AbandonInitialize(std::move(*shared));
      offer->begun = false;
    } else {
      FinishOffer(offer, std::move(*shared));
    }
  });
}

void World::FinishOffer(const OfferPtr& offer, std::unique_ptr<PendingPush> part) {
  offer->gathers =
      shard().store().FinishInitialize(std::move(part), [this, offer](const auto& outcome) {
        ++offer->answers;
        offer->outcome = outcome;
        if (!outcome.ok() || !outcome->accepted) return;
        Expect("offers that are accepted", oracle_->initialized(), false);
        oracle_->Initialize(offer->parameters);
        if (initial_ != nullptr)
          disks_.Take(std::exchange(initial_, nullptr), oracle_->Checkpoint());
      });
}

void World::EndOffer(const OfferPtr& offer) {
  CheckOffer(*offer);
  servers_->Settle();
  offer->over = true;
  for (const uint32_t server : offer->late) {
    servers_->Later([this, offer, server] { OfferToReplica(offer, server); });
  }
  servers_->Settle();
  CancelOffer(*offer);
  if (ok()) Expect("streams of an offer that wait without reason", offer->waiting, 0);
}

// Of a session that has never joined the other servers hear nothing.
void World::CancelOffer(SimulatedOffer& offer) {
  if (!HasJoined(offer.header.session)) {
    for (uint32_t server = 1; server < servers_->count(); ++server) {
      if (servers_->replica(server).CancelPush(offer.waits[server])) --offer.waiting;
    }
  }
}

void World::CheckOffer(const SimulatedOffer& offer) {
  if (!offer.begun) return;
  if (offer.fault == OfferFault::kBroken) {
    Expect("an offer that was given up was gathering",
           shard().store().CancelGathering(offer.gathers), true);
    Expect("answers to an offer that was given up", offer.answers, 0);
    return;
  }
  Reason expected = Reason::kNone;
  if (offer.fault == OfferFault::kNotFinite) expected = Reason::kNotFinite;
  if (offer.fault == OfferFault::kGap) expected = Reason::kBadChunk;
  Expect("answers to an offer", offer.answers, 1);
  ExpectReason(offer.outcome.status(), expected);
  if (ok())
    Expect("initialized by a whole offer", oracle_->initialized(), expected == Reason::kNone);
}

}  // namespace sluice
