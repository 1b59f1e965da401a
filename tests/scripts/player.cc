#include "tests/scripts/player.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "server/observe/server_state.h"
#include "tests/scripts/scripted_job.h"
#include "tests/scripts/state_words.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_flags.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using Words = std::vector<std::string>;

// A parameter of a script stands for so many elements of one value. So each of several servers
// holds some parameters.
constexpr size_t kElements = 64;

constexpr char kBetweenAnswers[] = " | ";

Words Answers(absl::string_view text) {
  return absl::StrSplit(text, kBetweenAnswers, absl::SkipEmpty());
}

// Whether the text is the pattern, in which a star stands for anything.
bool Matches(absl::string_view pattern, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '*');
  if (parts.size() == 1) return pattern == text;
  if (!absl::ConsumePrefix(&text, parts.front())) return false;
  if (!absl::ConsumeSuffix(&text, parts.back())) return false;
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = text.find(parts[i]);
    if (at == absl::string_view::npos) return false;
    text.remove_prefix(at + parts[i].size());
  }
  return true;
}

std::string ErrorWords(const absl::Status& error) {
  const Reason reason = ReasonOf(error);
  const std::string name = reason == Reason::kNone ? absl::StatusCodeToString(error.code())
                                                   : std::string(ReasonName(reason));
  return absl::StrCat(name, ": ", error.message());
}

// The shortest number that has the same bits.
std::string ShortestWords(float value) {
  char words[64];
  return std::string(words, std::to_chars(words, words + sizeof(words), value).ptr);
}

// One number if all parameters are equal.
std::string ValuesWords(const Values& values) {
  if (values.empty()) return "none";
  std::vector<float> parameters;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % kElements == 0) parameters.push_back(values[i]);
    if (!(values[i] == parameters.back())) return "elements of a parameter that differ";
  }
  const Values equal(parameters.size(), parameters[0]);
  if (parameters == equal) parameters.resize(1);
  return absl::StrJoin(parameters, " ", [](std::string* out, float value) {
    absl::StrAppend(out, ShortestWords(value));
  });
}

std::string OutcomeWords(const absl::StatusOr<PushOutcome>& outcome) {
  if (!outcome.ok()) return ErrorWords(outcome.status());
  const bool repeated = outcome->first_disposition.has_value();
  return absl::StrCat(
      repeated ? "again " : "",
      absl::AsciiStrToLower(
          DispositionName(repeated ? *outcome->first_disposition : outcome->disposition)),
      " at ", outcome->step.value(),
      outcome->staleness > 0 ? absl::StrCat(", stale by ", outcome->staleness) : "",
      outcome->options_differ.empty() ? "" : absl::StrCat(", ", outcome->options_differ));
}

std::string PullWords(const absl::StatusOr<StepParameters>& pulled) {
  if (!pulled.ok()) return ErrorWords(pulled.status());
  return absl::StrCat("step ", pulled->header.step.value(),
                      pulled->header.not_modified ? ", not modified"
                                                  : absl::StrCat(": ", ValuesWords(pulled->values)),
                      pulled->header.last ? ", the last" : "");
}

std::string WelcomeWords(const absl::StatusOr<Welcome>& welcome) {
  if (!welcome.ok()) return ErrorWords(welcome.status());
  return absl::StrCat("step ", welcome->step.value(), welcome->resumed ? ", resumed" : "",
                      welcome->last_sequence == Sequence()
                          ? ""
                          : absl::StrCat(", last push ", welcome->last_sequence.value()),
                      welcome->initialized ? "" : ", no parameters", welcome->late ? ", late" : "");
}

std::string EventWords(const JobEvent& event) {
  const std::string at = absl::StrCat(" at ", event.step.value());
  switch (event.kind) {
    case JobEvent::Kind::kTrainingFinished:
      return absl::StrCat("finished", at);
    case JobEvent::Kind::kDraining:
      return absl::StrCat("draining", at, event.diverged.empty() ? "" : ", diverged");
    case JobEvent::Kind::kEvicted:
      return absl::StrCat("evicted", at);
    case JobEvent::Kind::kPolicyChanged:
      return absl::StrCat(ConsistencyModeName(event.consistency.mode), at);
    case JobEvent::Kind::kDeserted:
      break;
  }
  return absl::StrCat("deserted", at);
}

// "w:3,mean:1:statistic": names, parameters, and kinds or types.
Layout ModelOf(absl::string_view text) {
  std::vector<LayoutRange> ranges;
  for (const absl::string_view tensor : absl::StrSplit(text, ',')) {
    const Words parts = absl::StrSplit(tensor, ':');
    LayoutRange range;
    range.name = parts[0];
    uint32_t parameters = 0;
    EXPECT_TRUE(parts.size() > 1 && absl::SimpleAtoi(parts[1], &parameters)) << tensor;
    range.length = parameters * kElements;
    range.shape = {static_cast<uint32_t>(range.length)};
    if (!ranges.empty()) range.offset = ranges.back().end();
    if (parts.size() > 2 && parts[2] == "statistic") range.kind = RangeKind::kStatistic;
    if (parts.size() > 2 && parts[2] == "float16") range.dtype = DataType::kFloat16;
    ranges.push_back(range);
  }
  return Layout::Create(ranges).value();
}

class Player {
 public:
  explicit Player(std::string row) : row_(std::move(row)) {}

  ~Player() { EndJob(); }

  // Returns all that is answered because of the line.
  Words Do(const ScriptLine& line) {
    line_ = &line;
    read_ = {0};
    const auto action = Actions().find(line.words[0]);
    if (action == Actions().end()) return {absl::StrCat("no action is called ", line.words[0])};
    if (job_ == nullptr && line.words[0] != "job") return {"there is no job yet"};
    if (!InProcess() && kInProcess.count(line.words[0]) > 0) {
      return {"a script cannot see that over gRPC; play the story with rows 1 and 3"};
    }
    Words answers = {(this->*action->second)()};
    if (answers[0].empty()) answers.clear();
    AddLate(&answers);
    for (size_t i = 0; i < line.words.size(); ++i) {
      EXPECT_EQ(read_.count(i), 1u) << "\"" << line.words[i] << "\" means nothing here";
    }
    return answers;
  }

 private:
  struct Worker {
    SessionId session;
    uint64_t nonce = 0;
    uint64_t sequence = 0;
    bool silent = false;
    std::unique_ptr<ScriptedPush> push;  // whose gradient is still to be sent
    Words heard;
  };
  // What was not answered at once.
  struct Open {
    std::string name;  // "push of a"
    std::unique_ptr<ScriptedPush> push;
    std::unique_ptr<ScriptedPull> pull;
    uint64_t number = 0;  // in the order in which they were sent
  };
  using Action = std::string (Player::*)();
  // What the job over gRPC does not tell, or does later than its next line.
  inline static const std::set<std::string> kInProcess = {"begin", "break", "fail",    "finish",
                                                          "heard", "hold",  "release", "losses"};
  static const std::map<std::string, Action>& Actions();

  // ---- The words of the line

  const std::string& Word(size_t index) const {
    static const std::string none;
    read_.insert(index);
    return index < line_->words.size() ? line_->words[index] : none;
  }
  bool Says(size_t index, absl::string_view word) const {
    return index < line_->words.size() && line_->words[index] == word && Word(index) == word;
  }
  // The value of "name=value", or "".
  std::string Option(absl::string_view name) const {
    for (size_t i = 0; i < line_->words.size(); ++i) {
      absl::string_view word = line_->words[i];
      if (!absl::ConsumePrefix(&word, absl::StrCat(name, "="))) continue;
      read_.insert(i);
      return std::string(word);
    }
    return "";
  }
  template <typename T>
  T Number(const std::string& word) const {
    T number = 0;
    EXPECT_TRUE(absl::SimpleAtoi(word, &number)) << "expected a number, not \"" << word << "\"";
    return number;
  }
  static absl::Duration Length(const std::string& word) {
    absl::Duration length;
    EXPECT_TRUE(absl::ParseDuration(word, &length))
        << "expected a duration, not \"" << word << "\"";
    return length;
  }
  bool InProcess() const { return row_ == "1" || row_ == "3"; }
  // The worker of the line, who has joined. "stranger" never does.
  Worker& Named() {
    EXPECT_TRUE(workers_.count(Word(1)) == 1 || Word(1) == "stranger")
        << Word(1) << " has not joined";
    return workers_[Word(1)];
  }
  bool ExpectsToWait() const { return line_->answers == "waits"; }
  // What the line's values stand for. One value stands for all parameters, unless it is "part".
  Values Elements() const {
    std::vector<float> parameters = line_->values;
    const size_t count = layout_.size() / kElements;
    const bool part = Says(line_->words.size() - 1, "part");
    if (parameters.size() == 1 && !part) parameters.assign(count, parameters[0]);
    Values elements;
    for (const float value : parameters) elements.insert(elements.end(), kElements, value);
    return elements;
  }
  // The options of a server with the line's flags.
  ShardOptions Options() const {
    std::vector<std::string> flags;
    for (size_t i = 0; i < line_->words.size(); ++i) {
      if (absl::StartsWith(line_->words[i], "--")) flags.push_back(Word(i));
    }
    const auto options = ServerOptionsFrom(ParseServerFlags(flags), 0);
    EXPECT_THAT(options.status(), IsOk());
    return options.ok() ? options->shard : ShardOptions();
  }

  // ---- Answers

  // What other actions have waited for, and this one has brought.
  void AddLate(Words* answers) {
    std::map<uint64_t, std::string> late;  // in the order in which they were sent
    const size_t expected = Answers(line_->answers).size();
    const auto all = [&] {
      for (auto open = open_.begin(); open != open_.end();) {
        const std::string words = AnswerOf(*open);
        if (!words.empty()) late[open->number] = absl::StrCat(open->name, ": ", words);
        open = words.empty() ? std::next(open) : open_.erase(open);
      }
      return answers->size() + late.size() >= expected;
    };
    if (!all()) job_->Await([&] { return all() || open_.empty(); });
    for (auto& [number, words] : late) answers->push_back(std::move(words));
  }
  static std::string AnswerOf(Open& open) {
    if (open.push != nullptr) {
      const auto answer = open.push->Answer();
      return answer.has_value() ? OutcomeWords(*answer) : "";
    }
    const auto answer = open.pull->Answer();
    return answer.has_value() ? PullWords(*answer) : "";
  }
  // Returns its answer, or "waits", and then tells it later.
  std::string NowOrLater(Open open) {
    const std::string answer = AnswerOf(open);
    if (!answer.empty()) return answer;
    open.number = ++last_open_;
    open_.push_back(std::move(open));
    return "waits";
  }
  template <typename T>
  static std::string OnlyErrors(const T& status) {
    return StatusOf(status).ok() ? "" : ErrorWords(StatusOf(status));
  }

  // ---- The job

  // Its end breaks the pushes that have begun, of which the workers hear.
  void EndJob() {
    open_.clear();
    for (auto& [name, worker] : workers_) worker.push = nullptr;
    job_ = nullptr;
    workers_.clear();
  }
  std::string Job() {
    EndJob();
    incarnation_ = Incarnation(1);
    tick_ = absl::Milliseconds(100);
    layout_ = ModelOf(Option("model").empty() ? "w:3" : Option("model"));
    ShardOptions options = Options();
    options.job_id = "job";
    options.session_base = SessionId();
    if (!Option("incarnation").empty()) {
      options.incarnation = incarnation_ = Incarnation(Number<uint64_t>(Option("incarnation")));
      options.session_base = SessionId(1000 * incarnation_.value());
    }
    if (!Option("tick").empty()) options.tick = tick_ = Length(Option("tick"));
    if (!Option("room").empty()) {  // gradients that may be in flight
      options.max_in_flight_bytes =
          Number<uint64_t>(Option("room")) * layout_.size() * sizeof(float);
    }
    const ScriptListener listener = [this](const std::string& name, const JobEvent& event) {
      workers_[name].heard.push_back(EventWords(event));
    };
    EXPECT_TRUE(InProcess() || row_ == "grpc" || row_ == "shared") << "unknown row " << row_;
    job_ = InProcess() ? JobInProcess(options, layout_, row_ == "1" ? 1 : 3, listener)
                       : JobOverGrpc(options, layout_, row_ == "shared");
    return "";
  }

  absl::StatusOr<Welcome> JoinAs(const std::string& name, SessionRole role) {
    Worker& worker = workers_[name];
    if (worker.nonce == 0) worker.nonce = ++last_nonce_;
    JoinRequest request;
    request.job_id = "job";
    request.role = role;
    request.worker = name;
    request.process_nonce = ProcessNonce(worker.nonce);
    request.host = "node";
    request.pid = 7;
    request.layout = layout_;
    request.optimizer.options = PlainSgd();
    if (!Option("index").empty()) request.index = Number<uint32_t>(Option("index"));
    auto welcome = job_->Join(request);
    if (welcome.ok()) worker.session = welcome->session;
    return welcome;
  }
  std::string Start() {
    for (size_t i = 1; i < line_->words.size(); ++i) {
      const auto welcome = JoinAs(Word(i), SessionRole::kWorker);
      if (!welcome.ok()) return ErrorWords(welcome.status());
    }
    const auto offered = job_->Offer(Named().session, Values(layout_.size()));
    if (!offered.ok()) return ErrorWords(offered.status());
    return offered->accepted ? "" : "its parameters are not taken";
  }
  std::string Join() { return WelcomeWords(JoinAs(Word(1), SessionRole::kWorker)); }
  std::string Observe() { return WelcomeWords(JoinAs(Word(1), SessionRole::kObserver)); }
  // Another process in place of one that has died.
  std::string Restart() {
    Worker& worker = workers_[Word(1)];
    if (worker.session != SessionId()) job_->Lose(worker.session);
    worker.nonce = ++last_nonce_;
    worker.sequence = 0;
    return Join();
  }
  std::string Lose() {
    job_->Lose(Named().session);
    return "";
  }
  std::string Leave() { return OnlyErrors(job_->Leave(Named().session, Farewell())); }
  std::string Fail() {
    Farewell farewell;
    Words why;
    for (size_t i = 2; i < line_->words.size(); ++i) why.push_back(Word(i));
    farewell.failure = absl::StrJoin(why, " ");
    return OnlyErrors(job_->Leave(Named().session, farewell));
  }
  std::string Silence() {
    Named().silent = true;
    return "";
  }
  // Time passes, in which all who are not silent send heartbeats, and the server ticks.
  std::string Pass() {
    PassAndTick(Length(Word(1)));
    return "";
  }
  std::string Run() {
    for (absl::Duration run; run < Length(Word(1)); run += tick_) PassAndTick(tick_);
    return "";
  }
  // The server does not run for so long.
  std::string Stop() {
    job_->clock().Advance(Length(Word(1)));
    return "";
  }
  std::string Tick() {
    job_->shard().Tick();
    job_->Settle();
    return "";
  }
  void PassAndTick(absl::Duration length) {
    job_->clock().Advance(length);
    for (const auto& [name, worker] : workers_) {
      const bool alive = !worker.silent && worker.session != SessionId();
      if (alive) job_->shard().Heartbeat(worker.session).IgnoreError();
    }
    Tick();
  }
  std::string Heartbeat() { return OnlyErrors(job_->shard().Heartbeat(Named().session)); }

  // ---- Pushes and pulls

  std::string Offer() {
    const auto outcome = job_->Offer(Named().session, Elements());
    if (!outcome.ok()) return ErrorWords(outcome.status());
    return absl::StrCat(outcome->accepted ? "taken" : "not taken", " at ", outcome->step.value());
  }
  std::unique_ptr<ScriptedPush> SendHeader() {
    Worker& worker = Named();
    PushHeader header;
    header.session = worker.session;
    header.sequence = Sequence(worker.sequence);
    EXPECT_TRUE(Says(2, "of")) << "of which step?";
    header.step = Step(Number<uint64_t>(Word(3)));
    header.incarnation = Option("of-incarnation").empty()
                             ? incarnation_
                             : Incarnation(Number<uint64_t>(Option("of-incarnation")));
    if (!Option("samples").empty()) header.samples = Number<uint32_t>(Option("samples"));
    float loss = 0;
    if (absl::SimpleAtof(Option("loss"), &loss)) header.loss = loss;
    header.options = ChangedByWords();
    double clip_norm = 0;
    if (absl::SimpleAtod(Option("clip-norm"), &clip_norm)) header.clip_norm = clip_norm;
    return job_->Push(header);
  }
  // The options of the worker's program, which begins with SGD's of the learning rate 1.
  SharedOptions ChangedByWords() {
    SgdOptions options;
    options.learning_rate = 1;
    bool changed = false;
    const auto take = [&](absl::string_view name, double& value) {
      if (Option(name).empty()) return;
      changed = absl::SimpleAtod(Option(name), &value);
    };
    take("lr", options.learning_rate);
    take("momentum", options.momentum);
    take("weight-decay", options.weight_decay);
    if (!changed) return nullptr;
    const auto group = Option("group").empty() ? 0 : Number<uint32_t>(Option("group"));
    return ShareOptions({{group, options}});
  }
  std::string Whole() {
    auto push = SendHeader();
    push->Finish(Elements());
    return NowOrLater({absl::StrCat("push of ", Word(1)), std::move(push), nullptr});
  }
  std::string Push() {
    ++Named().sequence;
    return Whole();
  }
  std::string Repeat() {
    Worker& worker = Named();
    const uint64_t latest = worker.sequence;
    if (!Option("sequence").empty()) worker.sequence = Number<uint64_t>(Option("sequence"));
    const std::string answer = Whole();
    worker.sequence = latest;
    return answer;
  }
  // A push of zeros for each loss, of the latest step. Tells the last answer.
  std::string Losses() {
    std::string answer;
    for (const float loss : line_->values) {
      PushHeader header;
      header.session = Named().session;
      header.sequence = Sequence(++Named().sequence);
      header.step = job_->shard().Describe().step;
      header.incarnation = incarnation_;
      header.loss = loss;
      const auto push = job_->Push(header);
      push->Finish(Values(layout_.size()));
      const auto outcome = push->Answer();
      answer = outcome.has_value() ? OutcomeWords(*outcome) : "waits";
    }
    return answer;
  }
  std::string Begin() {
    ++Named().sequence;
    auto push = SendHeader();
    const auto answer = push->Answer();
    if (answer.has_value()) return OutcomeWords(*answer);
    const bool admitted = push->admitted();
    Named().push = std::move(push);
    return admitted ? "admitted" : "waits";
  }
  std::string Finish() {
    auto push = std::move(Named().push);
    EXPECT_TRUE(push != nullptr) << Word(1) << " has begun no push";
    if (push == nullptr) return "";
    push->Finish(Elements());
    return NowOrLater({absl::StrCat("push of ", Word(1)), std::move(push), nullptr});
  }
  std::string Break() {
    Named().push = nullptr;
    return "";
  }

  std::string PullWith(const PullRequest& request) {
    auto pull = job_->Pull(request, ExpectsToWait());
    return NowOrLater({absl::StrCat("pull of ", Word(1)), nullptr, std::move(pull)});
  }
  // "pull a from 1 having 1"
  std::string Pull() {
    PullRequest request;
    request.session = Named().session;
    EXPECT_TRUE(Says(2, "from")) << "from which step?";
    request.min_step = Step(Number<uint64_t>(Word(3)));
    if (Says(4, "having")) request.have_step = Step(Number<uint64_t>(Word(5)));
    return PullWith(request);
  }
  // Pulls what the worker goes on with after its latest push, or "after 1", its first one.
  std::string Continue() {
    PullRequest request;
    request.session = Named().session;
    request.after = Sequence(Says(2, "after") ? Number<uint64_t>(Word(3)) : Named().sequence);
    return PullWith(request);
  }
  // The worker's oldest pull that waits.
  std::string Cancel() {
    for (auto open = open_.begin(); open != open_.end(); ++open) {
      if (open->name != absl::StrCat("pull of ", Word(1))) continue;
      open->pull->Cancel();
      open_.erase(open);
      return "";
    }
    return "no pull waits";
  }

  // ---- The operator

  std::string Set() {
    if (Says(1, "learning-rate")) {
      double rate = 0;
      EXPECT_TRUE(absl::SimpleAtod(Word(2), &rate)) << Word(2);
      const auto set = ChangeLearningRate(job_->shard(), rate);
      job_->Settle();
      return OnlyErrors(set);
    }
    Consistency consistency = Options().consistency;
    if (!Option("quorum").empty()) consistency.quorum = Number<uint32_t>(Option("quorum"));
    return OnlyErrors(job_->SetConsistency(consistency));
  }
  std::string Evict() {
    const absl::Status evicted = job_->shard().Evict(Word(1));
    job_->Settle();
    return OnlyErrors(evicted);
  }
  std::string Drain() {
    job_->shard().Drain();
    job_->Settle();
    return "";
  }
  // Another incarnation takes over.
  std::string Suspend() {
    return job_->shard().Suspend(absl::UnavailableError("it goes back")) ? "" : "not suspended";
  }
  std::string Hold() {
    job_->HoldLinks(true);
    return "";
  }
  std::string Release() {
    job_->HoldLinks(false);
    return "";
  }

  // ---- What can be seen

  // Over gRPC the thread of a call that was answered may still be about to make the step.
  std::string Seen(const std::function<std::string()>& look) {
    std::string seen;
    job_->Await([&] {
      seen = look();
      return Matches(line_->answers, seen);
    });
    return seen;
  }
  std::string Parameters() {
    return Seen([this] { return ValuesWords(job_->Parameters()); });
  }
  std::string State() {
    return Seen([this] { return FieldWords(ToProto(job_->shard().Describe()), Word(1)); });
  }
  std::string OfWorker() {
    return Seen([this]() -> std::string {
      for (const SessionRecord& record : job_->shard().Sessions()) {
        if (record.worker != Word(1)) continue;
        return FieldWords(ToProto(record, job_->shard().Describe(), {}), Word(2));
      }
      return "unknown";
    });
  }
  std::string Counters() {
    return Seen([this] { return Columns(job_->shard().Describe().counters); });
  }
  std::string Heard() {
    return absl::StrJoin(Word(1) == "owner" ? workers_["owner"].heard : Named().heard, ", ");
  }

  const std::string row_;
  const ScriptLine* line_ = nullptr;
  mutable std::set<size_t> read_;  // the words of the line that mean something
  uint64_t last_open_ = 0;
  Layout layout_;
  Incarnation incarnation_ = Incarnation(1);
  absl::Duration tick_ = absl::Milliseconds(100);
  uint64_t last_nonce_ = 1000;
  std::unique_ptr<ScriptedJob> job_;  // outlives the pushes of its workers
  std::map<std::string, Worker> workers_;
  std::vector<Open> open_;  // in the order in which they were sent
};

const std::map<std::string, Player::Action>& Player::Actions() {
  static const std::map<std::string, Action> actions = {
      {"job", &Player::Job},
      {"start", &Player::Start},
      {"join", &Player::Join},
      {"observe", &Player::Observe},
      {"restart", &Player::Restart},
      {"lose", &Player::Lose},
      {"leave", &Player::Leave},
      {"fail", &Player::Fail},
      {"silence", &Player::Silence},
      {"pass", &Player::Pass},
      {"offer", &Player::Offer},
      {"push", &Player::Push},
      {"repeat", &Player::Repeat},
      {"begin", &Player::Begin},
      {"finish", &Player::Finish},
      {"break", &Player::Break},
      {"pull", &Player::Pull},
      {"continue", &Player::Continue},
      {"cancel", &Player::Cancel},
      {"set", &Player::Set},
      {"evict", &Player::Evict},
      {"drain", &Player::Drain},
      {"hold", &Player::Hold},
      {"release", &Player::Release},
      {"parameters", &Player::Parameters},
      {"state", &Player::State},
      {"worker", &Player::OfWorker},
      {"counters", &Player::Counters},
      {"heard", &Player::Heard},
      {"run", &Player::Run},
      {"stop", &Player::Stop},
      {"tick", &Player::Tick},
      {"heartbeat", &Player::Heartbeat},
      {"losses", &Player::Losses},
      {"suspend", &Player::Suspend},
  };
  return actions;
}

}  // namespace

void Play(const Story& story, const std::string& path, const std::string& row) {
  Player player(row);
  for (const ScriptLine& line : story.lines) {
    SCOPED_TRACE(absl::StrCat(path, ":", line.number, ", with ", row));
    const Words expected = Answers(line.answers);
    const Words answered = player.Do(line);
    const bool right =
        std::equal(expected.begin(), expected.end(), answered.begin(), answered.end(), Matches);
    if (right) continue;
    ADD_FAILURE_AT(path.c_str(), line.number)
        << absl::StrJoin(line.words, " ") << " -> " << line.answers << "\n  with " << row
        << " is answered: " << absl::StrJoin(answered, kBetweenAnswers);
  }
}

}  // namespace sluice
