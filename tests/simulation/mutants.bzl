"""Deliberate bugs in the core, which the simulation must find.

Each replaces one statement or one expression in the sources of one folder of server/. All are compiled at
once, each behind a switch: SLUICE_MUTANT=NAME in the environment of simulation_mutants turns one on.
"""

# name: (folder, what stands there exactly once, what stands there instead). Where only a part is replaced,
# and the rest tells which place is meant, the part is in [[ ]].
MUTANTS = {
    "aborted_not_counted": ("admission", "++(why == Abandoned::kRejected ? counters_.rejected : counters_.aborted);", "if (why == Abandoned::kRejected) ++counters_.rejected;"),
    "accumulator_not_cleared": ("aggregation", "sum_.Clear();", ""),
    "answer_has_old_step": ("admission", "outcome.step = step;", "outcome.step = judged_at;"),
    "answers_not_kept": ("state", "answers[header.sequence] = answer;", ""),
    "arriving_bytes_renew_no_lease": ("admission", "if (std::exchange(inside.heard, arrived) != arrived) heard.push_back(entry.first);", "inside.heard = arrived;"),
    "backup_one_gradient_late": ("policy", "kBackup &&\n         [[progress.accumulated >= consistency_.quorum]]", "progress.accumulated > consistency_.quorum"),
    "banned_process_returns": ("membership", "banned.banned = true;", ""),
    "bound_off_by_one": ("policy", "staleness <= *consistency_.max_staleness", "staleness < *consistency_.max_staleness"),
    "cancelled_push_not_counted": ("admission", "in_flight_->Cancel(push)) return false;\n  [[gate_.Abandon(Abandoned::kAborted);]]", ""),
    "checkpoint_holds_step_under_way": ("shard", "checkpoint.workers.push_back(record.Before(checkpoint.step));", "checkpoint.workers.push_back(record);"),
    "contributors_not_missed_again": ("membership", "changed.assign(of_step_.begin(), of_step_.end());", ""),
    "contribution_not_recorded": ("admission", "contributor.Contribute(step);", ""),
    "discount_off_by_one": ("aggregation", "static_cast<float>(1 + staleness)", "static_cast<float>(2 + staleness)"),
    "divisor_off_by_one": ("aggregation", "[[static_cast<float>(count_)]];", "static_cast<float>(count_ + 1)"),
    "ended_sessions_keep_pulls_waiting": ("membership", "if (alive && !record.alive()) ++ended_;", "(void)alive;"),
    "draining_keeps_pushes_waiting": ("admission", "return draining || !sessions.IsAlive(push.header.session);", "return !sessions.IsAlive(push.header.session);"),
    "evicted_stays_member": ("membership", "evicted.presence = Presence::kEvicted;", "evicted.presence = Presence::kLost;"),
    "evicted_worker_not_awaited": ("membership", "evicted.awaited_until = now + options_.lease;", ""),
    "expected_workers_not_awaited_again": ("membership", "if (sessions_.census().open(SessionRole::kWorker) == 0) started_ = over;", "(void)over;"),
    "fewer_answers_kept": ("state", "answers.size() > kStoredAnswers", "answers.size() >= kStoredAnswers"),
    "fifth_push_waits": ("admission", "found->second < kMostWaiting", "found->second <= kMostWaiting"),
    "gone_workers_keep_their_index": ("membership", "if ([[record.alive()]]) taken.insert(record.index);", "true"),
    "held_up_pulls_not_judged_again": ("admission", "due_.insert(awaiting_step_.begin(), awaiting_step_.end());", ""),
    "going_on_waits_for_nobody": ("membership", "options_.goes_on && [[knows_all]]", "(knows_all || true)"),
    "have_step_ignored": ("admission", "request.have_step == context.step", "request.have_step.has_value()"),
    "high_water_mark_reset": ("membership", "record.presence = Presence::kPresent;", "record.presence = Presence::kPresent; record.last_sequence = Sequence(); record.answers.clear();"),
    "late_joiner_at_once": ("shard", "at_once ? now : now.Next()", "now"),
    "lent_memory_is_anybodys": ("replica", "[[first == lent_to_ ? lent_.lock() : nullptr]]", "lent_.lock()"),
    "limit_admits_one_more": ("admission", "full = [[used >= capacity_]];", "used > capacity_"),
    "limit_never_released": ("shard", "job_.admission.Release(contribution.header.session);", "(void)contribution;"),
    "late_joiner_never_counted": ("membership", "changed.push_back(it->second);", ""),
    "lost_lease_never_ends": ("membership", "record.alive() && record.last_seen <= deadline", "record.presence == Presence::kPresent && record.last_seen <= deadline"),
    "old_sequence_counts": ("admission", "header.sequence <= record.last_sequence", "header.sequence < Sequence()"),
    "pull_of_an_answered_push_not_judged_again": ("admission", "for (const SessionId session : changed) pulls_.NoteSession(session);", "(void)changed;"),
    "policy_adopted_mid_step": ("shard", "proposed = propose(job_.parts.settings);", "{ proposed = propose(job_.parts.settings); job_.parts.settings.Adopt(); }"),
    "predecessors_pushes_forgotten": ("state", "successor.pushes_before = pushes_in_launch();", ""),
    "pull_one_step_early": ("admission", "request.min_step > step_.number()", "request.min_step > step_.number().Next()"),
    "quorum_off_by_one": ("policy", "progress.all_wait || progress.accumulated >= consistency_.quorum", "progress.all_wait || progress.accumulated > consistency_.quorum"),
    "rank_order_ignored": ("aggregation", "order == ReductionOrder::kRank ? contribution.rank : Rank()", "Rank()"),
    "rank_order_too_early": ("aggregation", "if (waits) return absl::nullopt;", "(void)waits;"),
    "replaced_process_resumes": ("membership", "!forgot_workers_ && [[!replaced]];", "true"),
    "replaced_session_lives": ("membership", "[[EndSession(record);]]\n  const bool keeps_place", ""),
    "reserved_vector_for_anybody": ("admission", "([[used < capacity_ - 1]] ||", "used < capacity_"),
    "restored_answers_forgotten": ("membership", "record = std::move(later);", "record = std::move(later); record.answers.clear();"),
    "restored_worker_has_no_lease": ("membership", "record.active_from = step;\n    [[record.last_seen = now;]]", ""),
    "running_means_not_weighted": ("aggregation", "running_means_.Add(*header.running_means, [[weight.statistics]]);", "1"),
    "running_means_of_the_step_before": ("aggregation", "running_means_.Clear();", ""),
    "samples_not_weighted": ("aggregation", "samples_ += header.samples;", "++samples_;"),
    "skip_not_counted": ("admission", "++(disposition == Disposition::kSkipped ? counters_.skipped : counters_.accepted);", "++counters_.accepted;"),
    "slack_off_by_one": ("policy", "worker.clock > progress.slowest + consistency_.slack", "worker.clock >= progress.slowest + consistency_.slack"),
    "stale_gradient_counts": ("policy", "return staleness == 0;", "return staleness <= 1;"),
    "step_grows_by_two": ("admission", "Restore(number_.Next());", "Restore(number_.Next().Next());"),
    "stop_ends_leases": ("shard", "not_run_ += std::max(now - read_ - longest_, absl::ZeroDuration());", ""),
    "successor_changes_rank": ("membership", "[[request.index.value_or(it->second.index) == it->second.index]];", "true"),
    "successor_takes_lowest_index": ("membership", "(returns || [[it->second.joined || !SharesPart(records_, it->second, launched_)]])", "false"),
    "successor_waits_a_step": ("shard", "[[TakesOver(request, records, now)]] ||", "false"),
    # Several servers.
    "added_in_another_order": ("replica", "if (!last || journal_ != nullptr) return model_->Add(*push, weight);", "static thread_local std::unique_ptr<PendingPush> held; static thread_local GradientWeight other; if (!last && held == nullptr) { held = std::move(push); other = weight; return; } if (held != nullptr) { model_->Add(*push, weight); if (!last) { model_->Add(*held, other); held = nullptr; return; } model_->Keep(*held, other); last_ = std::move(held); return; }"),
    "answered_push_not_told_to_others": ("shard", "if (sessions_.count(name.session) > 0) Send(DropPush{PushId(), name});", ""),
    "attempt_ignored": ("replica", "const auto known = [[session.pushes.find(name)]];", "std::find_if(session.pushes.begin(), session.pushes.end(), [&](const auto& one) { return one.second.phase == PushPhase::kAwaitsStream && one.first.sequence == name.sequence; })"),
    "cancelled_gathering_goes_on": ("shard", "if (found == pushes_.end() || found->second.gathered == nullptr) return false;\n  [[Drop(push);]]", "reports_.Forget(push); pushes_.erase(found);"),
    "cancelled_pull_not_dropped": ("shard", "if (cancelled.has_value()) job_.others.DropPull({cancelled->session, cancelled->number});", ""),
    "drop_not_sent": ("shard", "if (!told) Send(DropPush{push, dropped.mapped().name});", ""),
    "earlier_pull_not_dropped": ("shard", "if (before > 0) Send(sluice::DropPull{{pull.session, before}});", ""),
    "end_of_session_keeps_nothing": ("shard", "if (ends && IsWhole(it->second.whole)) command.keep.push_back(it->first);", ""),
    "end_of_session_not_sent": ("shard", "  [[Send(command);]]\n}\n\n// With OK, the shard", ""),
    "ended_sessions_forgotten": ("replica", "ended_.Add(command.session);", ""),
    "failed_offer_not_dropped": ("shard", "absl::MutexLock lock(&job_.mu);\n  [[job_.others.Drop(parameters->id());]]", ""),
    "gathering_outlives_session": ("shard", "const bool stays = [[!ends || IsWhole(it->second.whole)]];", "true"),
    "replica_forgets_waiting_streams": ("replica", "dropped = arrived_.Drop(command.push);\n    [[GoOnTo(command.name, &completions);]]", ""),
    "late_pull_gets_latest": ("replica", "result = std::move(known->second.result);", "result = ReleasedPull(known->second.result.header, stripe_.latest());"),
    "losing_offer_taken": ("shard", "} else {\n      [[job_.others.Drop(offer->id());]]", "job_.others.TakeParameters(offer->id(), outcome.step);"),
    "messages_taken_twice": ("replica", "if (number != taken_ + 1) return false;", "if (number > taken_ + 1) return false;"),
    "norm_not_measured_elsewhere": ("replica", "if (have.refused.ok() && measures_norm) have.norm = push.ParameterNorm();", ""),
    "norm_of_one_stripe": ("replica", "squares += std::pow(part.norm.value_or(0), 2);", "squares = std::pow(part.norm.value_or(0), 2);"),
    "old_snapshot_published_elsewhere": ("replica", "snapshots_->Publish([[std::move(made.next)]]);", "made.current"),
    "orders_reported_for_others": ("replica", "if (replica < reports_.size() && IsMissing(reports_[replica])) reports_[replica] = report;", "for (auto& one : reports_) one = report;"),
    "published_after_pulls": ("shard", "job_.others.Send(PublishStep());\n    if (action.contribution.has_value()) {\n      job_.coordinator.OnAccumulated(*action.contribution, &completions);\n    }\n    before = stripe_.Publish();\n    job_.coordinator.OnApplied(director_->norms(), &completions);", "if (action.contribution.has_value()) { job_.coordinator.OnAccumulated(*action.contribution, &completions); } before = stripe_.Publish(); job_.coordinator.OnApplied(director_->norms(), &completions); job_.others.Send(PublishStep());"),
    "pulls_wait_after_drop": ("replica", "EndPulls(session, command.pull, PullDropped(), Always, lock.completions());", ""),
    "refusal_not_told_to_others": ("shard", "if (!whole->refused.ok()) Send(DropPush{report.push, push->second.name});", ""),
    "refused_pull_not_dropped": ("shard", "if (!result.ok()) DropPull(name);", ""),
    "released_pull_not_kept": ("replica", "[[pull.result = std::move(result);]]\n      return;", "session.pulls.erase(command.pull.number);"),
    "stripe_off_by_one": ("replica", "stripe_.Open(command.layout, command.optimizer, [[place]]);", "StripePlace{(place.stripe + 1) % place.stripes, place.stripes}"),
    "told_names_forgotten": ("replica", "session.told = std::max(session.told, name);", ""),
    "weight_of_others_ignored": ("replica", "stripe_.Add(std::move(*push), [[command.weight]], command.last);", "GradientWeight()"),
    "whole_without_one_part": ("replica", "parts->second.size() < [[replicas_]]", "replicas_ - 1"),
    # Returns of several servers.
    "checkpoint_counts_when_one_has_saved": ("shard", "if (checkpoint->Set(replica, checksum)) break;", "bool first = false; for (uint32_t any = 1; any < group_.replicas(); ++any) first = checkpoint->Set(any, checksum) || first; if (first) break;"),
    "given_up_step_is_lost": ("shard", "if ([[!given_up]]) Publish(work.action, next);", "true"),
    "gradients_of_lost_steps_count": ("shard", "IncarnationHistory(job_.options.incarnation, earlier, [[job_.step.number()]])", "job_.step.number().Next().Next()"),
    "joins_before_all_have_loaded": ("shard", "loading_.erase(replica);", "loading_.clear();"),
    "kept_checkpoints_not_told": ("shard", "job_.others.Send(sluice::KeepCheckpoints{std::move(keep)});", ""),
    "loaded_stripe_not_published": ("replica", "if (!rows.ok()) return rows;\n  absl::MutexLock lock(&mu_);\n  [[snapshots_->Publish(std::move(first));]]", "if (step == Step()) snapshots_->Publish(std::move(first));"),
    "loaded_values_not_copied": ("replica", "CopyTo(AsPiece(checkpoint.parameters->values.span()), first->values.span());", ""),
    "lost_steps_not_told": ("shard", "job_.parts.history.SetLostSteps(steps);", ""),
    "newest_checkpoint_not_kept": ("shard", "job_.others.Send(sluice::KeepCheckpoints{std::move(keep)});", "for (CheckpointKey& key : keep) key.step = key.step.Next(); const sluice::KeepCheckpoints others{keep}; job_.others.Send(others);"),
    "one_report_saves_all_checkpoints": ("shard", "if (checkpoint->Set(replica, checksum)) break;", "checkpoint->Set(replica, checksum);"),
    "other_step_loaded": ("replica", "stripe_.Restore(*loaded, [[command.source.step]]);", "command.source.step.Next()"),
    "pulls_wait_for_the_next_incarnation": ("shard", "job_.lifecycle.GoDown(why);\n  [[Settle(completions);]]\n  return true;", ""),
    "saved_with_later_parameters": ("replica", "files_.Run([this, command, checkpoint, replayed = replayed_] {\n      Save(command, *checkpoint, replayed);\n    });", "files_.Run([this, command, checkpoint, replayed = replayed_] { Save(command, StripeCheckpoint{stripe_.latest(), {}, checkpoint->optimizer_steps}, replayed); });"),
    "last_rows_not_added": ("replica", "stripe_.Keep({&push.gradient(), weight});\n  [[if (tables_ != nullptr) tables_->Add(push.rows(), weight.parameters, weight.share);]]", ""),
    "row_reads_ignore_history": ("tables", "if (found.as != StoredAs::kAbsent && [[found.touched <= step]])", "true"),
    "rows_have_no_weight": ("replica", "stripe_.Add({&push.gradient(), weight});\n  if (tables_ != nullptr) tables_->Add(push.rows(), [[weight.parameters]], weight.share);", "1"),
    "rows_not_loaded": ("replica", "tables_->Load(table, row);", ""),
    "rows_not_made": ("replica", "next->rows = [[tables_->Make(next->step, checksum == nullptr ? nullptr : &of_rows)]];", "tables_->Copy(next->step)"),
    "rows_stay_in_the_sum": ("replica", "if (tables_ != nullptr) tables_->Clear();", ""),
    "rows_not_read_from_disk": ("tables", "if (found.on_disk) [[reads.push_back({ids[i], found.touched, found.offset, to[i]});]]", ""),
    "rows_not_taken_from_disk": ("tables", "std::copy_n(row.to, size, record->elements());", "(void)size;"),
    "saved_rows_not_read_from_disk": ("tables", "if (row.on_disk) [[reads.push_back({ids[i], row.touched, row.offset, to});]]", ""),
    "stripes_not_loaded": ("shard", "job_.others_checkpoints.Load({SourceOf(checkpoint), begins});", ""),
    # Journals.
    "all_waiting_completes_no_step": ("admission", "progress.all_wait = holds_contributors_ && roster_.sessions().census().all_wait();", "progress.all_wait = false;"),
    "answered_before_all_disks": ("admission", "settled_ = [[std::min(durable_.value_or(published_), published_)]];", "published_"),
    "begin_of_journal_not_sent": ("shard", "job_.others.Send(BeginJournal{options_.incarnation});", ""),
    "contributors_not_repeated": ("shard", "job_.roster.sessions().Restore([[record.contributors]], record.forgot_workers", "std::vector<SessionRecord>()"),
    "earlier_answers_not_repeated": ("membership", "later.answers.insert(record.answers.begin(), record.answers.end());", ""),
    "held_pushes_delay_others": ("admission", "for (const SessionId session : answers_.Sessions()) served.push_back(session);", ""),
    "incarnation_not_in_the_journal": ("replica", "record.incarnation = incarnation_;", ""),
    "joins_before_steps_are_repeated": ("shard", "if (ready.ok()) ready = job_.CheckRecovery(Recovery::kDone);", ""),
    "journal_error_ignored": ("shard", "if (!journal_error_.ok()) acceptable = journal_error_;", ""),
    "last_gradient_not_in_the_journal": ("replica", "if ([[!last || journal_ != nullptr]]) return model_->Add(*push, weight);", "!last"),
    "later_begins_not_told": ("shard", "job_.others_checkpoints.Load({SourceOf(checkpoint), [[begins]]});", "IncarnationBegins()"),
    "longest_journal_decides": ("shard", "[[report.journaled < least_journaled_.step]]) least_journaled_ = {report.journaled, replica};", "report.journaled > least_journaled_.step"),
    "repeated_before_all_disks": ("admission", "if ([[with.has_value() && *with > answers_.settled()]]) {", "false"),
    "repeated_incarnation_forgotten": ("shard", "if ([[record.incarnation != incarnations_.current()]]) {\n    incarnations_ = IncarnationHistory(record.incarnation", "false"),
    "repeated_step_not_measured": ("replica", "const bool measures = [[journal_ != nullptr || loaded_]];", "journal_ != nullptr"),
    "repeated_sum_not_loaded": ("replica", "if (!sum.empty() || !rows.empty()) model_->Load(sum, rows);", ""),
    "repeated_with_other_rules": ("shard", "director_->Make([[record.terms]],", "[&] { StepTerms terms = record.terms; terms.consistency = Consistency(); return terms; }()"),
    "samples_not_repeated": ("shard", "director_->Load(record.gradients, record.samples);", "director_->Load(record.gradients, record.gradients);"),
    "settings_not_repeated": ("shard", "job_.settings.Replay(record.terms.consistency, record.learning_rate);", ""),
    "step_in_memory_counted_late": ("shard", "if (!applying_) Settle(completions);", "Settle(completions);"),
    "steps_in_memory_not_counted": ("admission", "in_flight_->SetJournaled(step_.number().value() - answers_.settled().value());", ""),
    "sum_overwritten_before_the_journal": ("replica", "if ([[journal_ == nullptr]]) model_->SumInto(*BeginStep(last ? PushId() : push->id()).next);", "true"),
    "steps_not_repeated_elsewhere": ("shard", "job_.others.Send(sluice::ReplayStep{record.step, record.incarnation});", ""),
}

def _quoted(text):
    return "'" + text.replace("$", "$$") + "'"

def mutants(name, deps):
    """Declares `name`, the simulation with all mutants, with `deps`. Returns the names of the mutants."""
    copies = []
    for folder in {mutant[0]: None for mutant in MUTANTS.values()}:
        copies.append("mutants/%s.cc" % folder)
        planted = [
            text
            for mutant, (place, old, new) in MUTANTS.items()
            if place == folder
            for text in (mutant, old, new)
        ]
        native.genrule(
            name = "mutate_" + folder,
            testonly = True,
            srcs = ["//server/%s:%s_sources.cc" % (folder, folder)],
            outs = [copies[-1]],
            cmd = "$(location mutate.py) $< $@ " + " ".join([_quoted(text) for text in planted]),
            tools = ["mutate.py"],
        )

    # The copies are linked before the libraries: the linker then has no use for the archives' own objects.
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = copies,
        copts = ["-O1"],  # compiled as fast as with -O0, and plays six times as fast
        linkstatic = True,
        deps = deps,
    )
    return MUTANTS.keys()
