#include "analysis/simulator/simulate.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <utility>

namespace tutti::simulator {
namespace {

/// The work of an endpoint in a step.
struct Member {
  std::uint32_t first = 0;  // its messages: [first, first + sends) of the step
  std::uint32_t sends = 0;
  std::uint32_t pending = 0;  // messages that must still arrive, or leave, before it is done
  bool entered = false;
  double ready = 0;
  double reduced = 0;
};

struct Step {
  std::vector<Message> messages;  // by sender
  std::vector<Rank> ranks;        // of members, ascending; empty if all endpoints are members
  std::vector<Member> members;
  std::size_t open = 0;  // number of members that are not done

  Member* find(Rank rank) {
    if (ranks.empty()) return members.empty() ? nullptr : &members[index(rank)];
    const auto found = std::ranges::lower_bound(ranks, rank);
    if (found == ranks.end() || *found != rank) return nullptr;
    return &members[static_cast<std::size_t>(found - ranks.begin())];
  }
};

void sort_by_sender(std::vector<Message>& messages) {
  const auto earlier = [](const Message& a, const Message& b) { return a.from < b.from; };
  if (!std::ranges::is_sorted(messages, earlier)) std::ranges::stable_sort(messages, earlier);
}

void find_members(Step& step, int endpoints) {
  std::vector<char> in(index(endpoints));
  for (const Message& m : step.messages) in[index(m.from)] = in[index(m.to)] = 1;
  const auto count = static_cast<std::size_t>(std::ranges::count(in, 1));
  if (count < in.size())
    for (Rank rank = 0; rank < endpoints; ++rank)
      if (in[index(rank)]) step.ranks.push_back(rank);
  step.members.resize(count);
  step.open = count;
}

class Player {
 public:
  Player(MessageSource& source, Wire& wire, double reduce_ns_per_byte, Rank switches)
      : source_(source),
        wire_(wire),
        reduce_ns_per_byte_(reduce_ns_per_byte),
        switches_(switches),
        next_(index(source.endpoints())) {
    outcome_.finished_ns.resize(index(source.endpoints()));
    outcome_.steps.resize(index(source.steps()), {.begin_ns = std::numeric_limits<double>::infinity()});
  }

  Outcome play() && {
    for (Rank rank = 0; rank < source_.endpoints(); ++rank) go_on(rank, 0);
    std::vector<Delivery> deliveries;
    while (wire_.advance(deliveries)) {
      for (const Delivery& delivery : deliveries) deliver(delivery);
      deliveries.clear();
    }
    assert(steps_.empty() && "a message has been lost, or some wait for each other");
    for (const double finished : outcome_.finished_ns) outcome_.time_ns = std::max(outcome_.time_ns, finished);
    return std::move(outcome_);
  }

 private:
  Step& step(int number) {
    for (int next = forgotten_ + static_cast<int>(steps_.size()); next <= number; ++next) fetch(next);
    return steps_[index(number - forgotten_)];
  }
  void fetch(int number);
  void go_on(Rank rank, double now);
  bool enter(Rank rank, Step& step, Member& member, double now);
  double finish(Rank rank, int number, Step& step, const Member& member);
  void deliver(const Delivery& delivery);
  void arrived(Rank rank, Member& member, Step& step, int number, double at);
  void forget();

  MessageSource& source_;
  Wire& wire_;
  double reduce_ns_per_byte_;
  Rank switches_;
  std::vector<int> next_;   // by endpoint: its current step
  std::deque<Step> steps_;  // from the first step that some endpoint has not finished
  int forgotten_ = 0;
  Outcome outcome_;
};

void Player::fetch(int number) {
  Step& step = steps_.emplace_back();
  source_.messages_of(number, step.messages);
  sort_by_sender(step.messages);
  find_members(step, source_.endpoints());
  StepOutcome& outcome = outcome_.steps[index(number)];
  for (std::size_t i = 0; i < step.messages.size(); ++i) {
    const Message& m = step.messages[i];
    Member& sender = *step.find(m.from);
    if (sender.sends++ == 0) sender.first = static_cast<std::uint32_t>(i);
    ++sender.pending;
    ++step.find(m.to)->pending;
    outcome.bytes += m.bytes;
  }
  outcome.messages = step.messages.size();
  outcome_.messages += outcome.messages;
  outcome_.bytes += outcome.bytes;
}

/// Passes through all steps in which there is nothing to wait for.
void Player::go_on(Rank rank, double now) {
  for (int& number = next_[index(rank)]; number < source_.steps(); ++number) {
    if (number < forgotten_) continue;
    Step& current = step(number);
    Member* const member = current.find(rank);
    if (member == nullptr) continue;
    if (!enter(rank, current, *member, now)) return;
    now = finish(rank, number, current, *member);
  }
  forget();
}

/// True if the rank finishes the step at once.
bool Player::enter(Rank rank, Step& step, Member& member, double now) {
  member.entered = true;
  member.ready = std::max(member.ready, now);
  const int number = next_[index(rank)];
  StepOutcome& outcome = outcome_.steps[index(number)];
  outcome.begin_ns = std::min(outcome.begin_ns, now);
  wire_.enter(rank, number, now);
  for (std::uint32_t i = 0; i < member.sends; ++i)
    if (const auto sent = wire_.send(step.messages[member.first + i], now)) {
      member.ready = std::max(member.ready, *sent);
      --member.pending;
    }
  return member.pending == 0;
}

double Player::finish(Rank rank, int number, Step& step, const Member& member) {
  const double work = rank < switches_ ? member.reduced * reduce_ns_per_byte_ : 0;
  const double done = member.ready + work;
  double& end = outcome_.steps[index(number)].end_ns;
  end = std::max(end, done);
  outcome_.finished_ns[index(rank)] = done;
  --step.open;
  return done;
}

void Player::deliver(const Delivery& delivery) {
  const Message& m = *delivery.message;
  Step& step = steps_[index(m.step - forgotten_)];
  const Rank from = m.from, to = m.to;
  const int number = m.step;
  Member& receiver = *step.find(to);
  receiver.reduced += m.reduced;
  if (delivery.sent >= 0) arrived(from, *step.find(from), step, number, delivery.sent);
  arrived(to, receiver, step, number, delivery.received);
  forget();
}

void Player::arrived(Rank rank, Member& member, Step& step, int number, double at) {
  member.ready = std::max(member.ready, at);
  if (--member.pending > 0 || !member.entered) return;
  const double done = finish(rank, number, step, member);
  ++next_[index(rank)];
  go_on(rank, done);
}

void Player::forget() {
  for (; !steps_.empty() && steps_.front().open == 0; ++forgotten_) steps_.pop_front();
}

}  // namespace

Outcome simulate(MessageSource& source, Wire& wire, double reduce_ns_per_byte, Rank switches) {
  return Player(source, wire, reduce_ns_per_byte, switches).play();
}

}  // namespace tutti::simulator
