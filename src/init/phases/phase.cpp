#include "init/phases/phase.h"

#include <algorithm>

#include <fmt/format.h>

#include "init/phases/phases.h"

namespace tutti::start {

Result<void> ExchangePhase::begin(Facts& facts) {
  facts.exchange.exchange(TUTTI_TRY(contribution(facts)));
  return {};
}

Result<Progress> ExchangePhase::advance(Facts& facts) {
  if (!TUTTI_TRY(facts.exchange.advance())) return Progress::blocked;
  if (!TUTTI_TRY(take(facts, facts.exchange.gathered()))) return Progress::done;
  TUTTI_TRY(begin(facts));
  return Progress::moved;
}

std::int64_t ExchangePhase::poll_set(const Facts& facts, std::vector<PollItem>& items) const {
  return facts.exchange.poll_set(items);
}

/// During an exchange, the root reports which ranks are late.
Result<Progress> WaitPhase::advance(Facts& facts) {
  TUTTI_TRY(facts.exchange.look());
  if (facts.process.system.now_ns() < facts.deadline_ns) return wait(facts);
  Error late{.code = Code::timeout, .what = fmt::format("the limit of the start passed {}", while_waiting())};
  if (auto why = stuck(facts)) late.what += ": " + why->text();
  return end_at_once(facts, std::move(late));
}

std::int64_t WaitPhase::poll_set(const Facts& facts, std::vector<PollItem>& items) const {
  return std::min(facts.deadline_ns, wait_set(facts, items));
}

Error end_at_once(const Facts& facts, Error error) {
  facts.exchange.fail(Error{.code = error.code, .what = fmt::format("rank {}: {}", facts.rank(), error.words())});
  return error;
}

std::optional<Error> cannot_accept(const Facts& facts) {
  auto server = facts.process.network.connections();
  return server ? (*server)->stuck() : std::nullopt;
}

std::vector<std::unique_ptr<Phase>> phases() {
  std::vector<std::unique_ptr<Phase>> all;
  const auto add = [&all]<class... All>(std::unique_ptr<All>... one) { (all.push_back(std::move(one)), ...); };
  add(std::make_unique<Greeting>(), std::make_unique<Sharing>(), std::make_unique<Describing>(),
      std::make_unique<Mapping>(), std::make_unique<Synchronizing>(), std::make_unique<Carrier>(),
      std::make_unique<Addresses>(), std::make_unique<Proving>(), std::make_unique<Comparing>(),
      std::make_unique<Reaching>(), std::make_unique<Agreement>());
  return all;
}

}  // namespace tutti::start
