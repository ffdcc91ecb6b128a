// Does check accept right plans, and does it refuse each kind of wrong one, naming the place?
#include "analysis/proof/check.h"

#include <gtest/gtest.h>

#include "support/plan_writer.h"

namespace tutti {
namespace {

using testing::at_peer;
using testing::contributed;
using testing::input;
using testing::output;
using testing::PlanWriter;
using testing::scratch;
using testing::slot;
using testing::sum_of;

using Plans = std::vector<Plan>;

/// Two ranks, one part, one step: everybody sends its input to the other and adds both.
Schedule exchange_schedule() {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  for (Rank to = 0; to < 2; ++to)
    for (Rank from = 0; from < 2; ++from) schedule.reduce(from, {Buffer::input, 0}, to, {Buffer::output, 0}, from);
  return schedule;
}

PlanWriter send_and_add(const Schedule& schedule, Rank rank) {
  const Rank peer = 1 - rank;
  const Place mine = contributed(input(0));
  const Place theirs = slot(peer, 0);
  PlanWriter w(schedule, rank, Access::slots, 1);
  w.acquire(peer, 1).copy(mine, {slot(peer, 0)}).commit(peer);
  w.peek(peer, 1);
  if (rank == 0)
    w.reduce({mine, theirs}, {output(0)}).last();
  else
    w.reduce({theirs, mine}, {output(0)}).last();
  return w.release(peer).settle(peer);
}

Plans exchange_plans(const Schedule& schedule) {
  return {send_and_add(schedule, 0).plan(), send_and_add(schedule, 1).plan()};
}

/// Two ranks through windows: rank r adds part r of both inputs and stores it into both outputs.
Schedule halves_schedule() {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 2);
  for (Rank owner = 0; owner < 2; ++owner)
    for (Rank from = 0; from < 2; ++from)
      schedule.reduce(from, {Buffer::input, owner}, owner, {Buffer::output, owner}, from);
  schedule.next_step();
  for (Rank owner = 0; owner < 2; ++owner)
    schedule.copy(owner, {Buffer::output, owner}, 1 - owner, {Buffer::output, owner});
  return schedule;
}

PlanWriter add_half(const Schedule& schedule, Rank rank) {
  const Rank peer = 1 - rank;
  const Place mine = contributed(input(rank));
  const Place theirs = contributed(at_peer(Where::peer_input, peer, rank));
  PlanWriter w(schedule, rank, Access::mapped);
  if (rank == 0)
    w.reduce({mine, theirs}, {output(0), at_peer(Where::peer_output, peer, 0)}, 0).last();
  else
    w.reduce({theirs, mine}, {output(1), at_peer(Where::peer_output, peer, 1)}, 1).last();
  return w.signal(peer).wait(peer);
}

Plans halves_plans(const Schedule& schedule) {
  return {add_half(schedule, 0).plan(), add_half(schedule, 1).plan()};
}

/// The first refusal over all cases.
Result<void> check_all(const Schedule& schedule, const Plans& plans) {
  for (const CheckCase& how : check_cases(schedule.collective(), schedule.ranks(), plans[0].access))
    if (auto checked = check(schedule, plans, how); !checked) return checked;
  return {};
}

std::string text(const Result<void>& result) {
  return result ? "" : result.error().text();
}

void expect_refused(const Result<void>& result, std::string_view because) {
  ASSERT_FALSE(result) << "accepted, though: " << because;
  EXPECT_NE(result.error().what.find(because), std::string::npos) << result.error().text();
  EXPECT_EQ(result.error().code, Code::internal);
  EXPECT_GE(result.error().peer, 0);
}

/// Where in `plan` the n-th action with that verb is.
std::size_t find(const Plan& plan, Verb verb, int n = 0) {
  for (std::size_t i = 0; i < plan.actions.size(); ++i)
    if (plan.actions[i].verb == verb && n-- == 0) return i;
  ADD_FAILURE() << "no such action";
  return 0;
}

void drop(Plan& plan, Verb verb, int n = 0) {
  plan.actions.erase(plan.actions.begin() + static_cast<std::ptrdiff_t>(find(plan, verb, n)));
}

TEST(Check, AcceptsAnExchangeThroughSlots) {
  const Schedule schedule = exchange_schedule();
  EXPECT_EQ(text(check_all(schedule, exchange_plans(schedule))), "");
}

TEST(Check, AcceptsHalvesThroughWindows) {
  const Schedule schedule = halves_schedule();
  EXPECT_EQ(text(check_all(schedule, halves_plans(schedule))), "");
}

struct Flaw {
  const char* name;
  void (*spoil)(Plans& plans);
  const char* because;
};

class CheckExchange : public ::testing::TestWithParam<Flaw> {};

TEST_P(CheckExchange, Refuses) {
  const Schedule schedule = exchange_schedule();
  Plans plans = exchange_plans(schedule);
  GetParam().spoil(plans);
  expect_refused(check_all(schedule, plans), GetParam().because);
}

std::string flaw_name(const ::testing::TestParamInfo<Flaw>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, CheckExchange,
    ::testing::Values(
        Flaw{"OtherOrder", [](Plans& p) { std::swap(p[1].places[2], p[1].places[3]); }, "the schedule makes"},
        Flaw{"OwnContributionTwice", [](Plans& p) { p[0].places[3] = contributed(input(0)); }, "the schedule makes"},
        Flaw{"NotScaled", [](Plans& p) { p[0].places[2].contribution = 0; }, "without its mark"},
        Flaw{"SentUnscaled", [](Plans& p) { p[0].places[0].contribution = 0; }, "without its mark"},
        Flaw{"ScaledTwice", [](Plans& p) { p[0].places[3].contribution = 1; }, "cannot be a contribution"},
        Flaw{"InputHalved", [](Plans& p) { p[0].places[3].halvings = 1; }, "is halved 0 times, not 1"},
        Flaw{"ResultNotHalved", [](Plans& p) { p[0].actions[find(p[0], Verb::reduce)].halvings = 0; },
             "must be halved 1 times, not 0"},
        Flaw{"CopyHalved", [](Plans& p) { p[0].places[0].halvings = 1; }, "only a sum of an average is halved"},
        Flaw{"DestinationHalved", [](Plans& p) { p[0].places[4].halvings = 1; }, "only a source is halved"},
        Flaw{"NotFinished", [](Plans& p) { p[0].actions[find(p[0], Verb::reduce)].last = 0; }, "makes finished"},
        Flaw{"NothingSent", [](Plans& p) { drop(p[0], Verb::copy); }, "nothing was written"},
        Flaw{"NotCommitted", [](Plans& p) { drop(p[0], Verb::commit); }, "left open"},
        Flaw{"NotAcquired", [](Plans& p) { drop(p[0], Verb::acquire); }, "no message is open"},
        Flaw{"NotPeeked", [](Plans& p) { drop(p[0], Verb::peek); }, "no message is open"},
        Flaw{"NotReleased", [](Plans& p) { drop(p[0], Verb::release); }, "left open"},
        Flaw{"NotSettled", [](Plans& p) { drop(p[0], Verb::settle); }, "may still take its message"},
        Flaw{"CommitTwice",
             [](Plans& p) { p[0].actions.insert(p[0].actions.begin() + 3, p[0].actions[find(p[0], Verb::commit)]); },
             "commit without"},
        Flaw{"ReleasedBeforeRead",
             [](Plans& p) {
               std::swap(p[0].actions[find(p[0], Verb::reduce)], p[0].actions[find(p[0], Verb::release)]);
             },
             "no message is open"},
        Flaw{"ItemBeyond", [](Plans& p) { p[0].places[3].block = 1; }, "beyond its items"},
        Flaw{"ItemsDiffer", [](Plans& p) { p[0].actions[find(p[0], Verb::peek)].items = 0; }, "which sends 1"},
        Flaw{"ItemsOverMax", [](Plans& p) { p[0].items_max = p[1].items_max = 0; }, "items_max"},
        Flaw{"ItemsMaxDiffers", [](Plans& p) { p[0].items_max = 2; }, "items_max"},
        Flaw{"WritesInput", [](Plans& p) { p[0].places[4] = input(0); }, "must not be written"},
        Flaw{"OutputBeyond", [](Plans& p) { p[0].places[4] = output(1); }, "out of range"},
        Flaw{"PartBeyond", [](Plans& p) { p[0].actions[1].part = 1; }, "part out of range"},
        Flaw{"OperandsBeyond", [](Plans& p) { p[0].actions[1].first = 5; }, "operands out of range"},
        Flaw{"SendsToItself", [](Plans& p) { p[0].actions[0].peer = 0; }, "is not a peer"},
        Flaw{"PeerBeyond", [](Plans& p) { p[0].actions[0].peer = 2; }, "is not a peer"},
        Flaw{"WindowInAFifoPlan", [](Plans& p) { p[0].places[3] = at_peer(Where::peer_input, 1, 0); }, "no window"},
        Flaw{"FlagInAFifoPlan", [](Plans& p) { p[0].actions.push_back({.verb = Verb::signal, .peer = 1}); },
             "no flags"},
        Flaw{"OtherRanksPlan", [](Plans& p) { p[0] = p[1]; }, "another rank"},
        Flaw{"OtherCollective", [](Plans& p) { p[0].collective = Collective::all_gather; }, "another collective"},
        Flaw{"PlanMissing", [](Plans& p) { p.pop_back(); }, "1 plans for 2 ranks"}),
    flaw_name);

class CheckHalves : public ::testing::TestWithParam<Flaw> {};

TEST_P(CheckHalves, Refuses) {
  const Schedule schedule = halves_schedule();
  Plans plans = halves_plans(schedule);
  GetParam().spoil(plans);
  expect_refused(check_all(schedule, plans), GetParam().because);
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, CheckHalves,
    ::testing::Values(
        Flaw{"LeavesTooEarly", [](Plans& p) { drop(p[0], Verb::wait), drop(p[1], Verb::signal); }, "race"},
        Flaw{"SignalBeforeThePass", [](Plans& p) { std::swap(p[0].actions[0], p[0].actions[1]); }, "race"},
        Flaw{"NotSignalled", [](Plans& p) { drop(p[0], Verb::signal); }, "deadlock: wait with rank 0"},
        Flaw{"NotWaited", [](Plans& p) { drop(p[0], Verb::wait); }, "race"},
        Flaw{"SignalTwice", [](Plans& p) { p[0].actions.push_back(p[0].actions[1]); }, "ends as nothing"},
        Flaw{"OtherPart", [](Plans& p) { p[0].places[0].block = 1; }, "another part"},
        Flaw{"SlotInAWindowPlan", [](Plans& p) { p[0].places[0] = slot(1, 0); }, "no slots"},
        Flaw{"LineInAWindowPlan", [](Plans& p) { p[0].places[0] = at_peer(Where::peer_payload, 1, 0); },
             "reads no call descriptors"},
        Flaw{"OwnWindow", [](Plans& p) { p[0].places[1].peer = 0; }, "not a peer"},
        Flaw{"PushAtPull", [](Plans& p) { p[0].access = p[1].access = Access::cma; }, "no window"},
        Flaw{"MixedAccesses", [](Plans& p) { p[0].access = Access::cma, p[0].places[3] = output(0); },
             "another access"}),
    flaw_name);

TEST(Check, NamesRankChannelAndStepOfADeadlock) {
  const Schedule schedule = exchange_schedule();
  Plans plans = exchange_plans(schedule);
  // Both wait for the other's message before they send their own.
  for (Plan& plan : plans) {
    plan.actions = {plan.actions[3], plan.actions[4], plan.actions[5], plan.actions[0],
                    plan.actions[1], plan.actions[2], plan.actions[6]};
    for (Action& a : plan.actions) a.step = 7;
  }
  const auto checked = check(schedule, plans, {.slots = 2});
  expect_refused(checked, "deadlock: peek with rank 1");
  EXPECT_EQ(checked.error().peer, 0);
  EXPECT_EQ(checked.error().channel, 0);
  EXPECT_EQ(checked.error().step, 7);
}

/// Rank 0's input accesses rank 2 by way of rank 1; two blocks, a message each.
Schedule chain_schedule() {
  Schedule schedule({.collective = Collective::broadcast, .ranks = 3}, 2);
  for (int block = 0; block < 2; ++block) {
    schedule.copy(0, {Buffer::input, block}, 0, {Buffer::output, block});
    schedule.copy(0, {Buffer::input, block}, 1, {Buffer::output, block});
    schedule.next_step();
    schedule.copy(1, {Buffer::output, block}, 2, {Buffer::output, block});
    schedule.next_step();
  }
  return schedule;
}

Plans chain_plans(const Schedule& schedule) {
  PlanWriter first(schedule, 0, Access::slots, 1);
  PlanWriter middle(schedule, 1, Access::slots, 1);
  PlanWriter end(schedule, 2, Access::slots, 1);
  for (int block = 0; block < 2; ++block) {
    first.acquire(1, 1).copy(input(block), {output(block), slot(1, 0)}, block).commit(1).settle(1);
    middle.peek(0, 1).acquire(2, 1).copy(slot(0, 0), {output(block), slot(2, 0)}, block);
    middle.commit(2).release(0).settle(2);
    end.peek(1, 1).copy(slot(1, 0), {output(block)}, block).release(1);
  }
  return {first.plan(), middle.plan(), end.plan()};
}

TEST(Check, AcceptsForwardingIntoAnOpenMessage) {
  const Schedule schedule = chain_schedule();
  EXPECT_EQ(text(check_all(schedule, chain_plans(schedule))), "");
}

TEST(Check, RefusesTwoEndsThatCutAMessageOtherwise) {
  const Schedule schedule = chain_schedule();
  Plans plans = chain_plans(schedule);
  // Rank 2 takes the blocks in the other order: as many items, of another part.
  std::swap(plans[2].actions[1], plans[2].actions[4]);
  expect_refused(check_all(schedule, plans), "of another part");
}

TEST(Check, RefusesASignalThatNobodyTakes) {
  const Schedule schedule = halves_schedule();
  Plans plans = halves_plans(schedule);
  plans[0].actions.push_back(plans[0].actions[1]);
  expect_refused(check(schedule, plans, {.calls = 1}), "never waits for its signal");
}

TEST(Check, RefusesAMessageThatNobodyTakes) {
  const Schedule schedule = exchange_schedule();
  Plans plans = exchange_plans(schedule);
  drop(plans[1], Verb::peek), drop(plans[1], Verb::release);
  plans[1].places[2] = contributed(input(0));
  expect_refused(check(schedule, plans, {.slots = 9, .tiles = 1, .calls = 1}), "the schedule makes");
  plans = exchange_plans(schedule);
  Plan& surplus = plans[0];
  for (const Verb verb : {Verb::acquire, Verb::commit}) surplus.actions.push_back({.verb = verb, .peer = 1});
  expect_refused(check(schedule, plans, {.slots = 2, .tiles = 1, .calls = 1}), "never takes its message");
}

TEST(Check, CountsSlots) {
  Schedule schedule({.collective = Collective::all_gather, .ranks = 2}, 2);
  for (Rank from = 0; from < 2; ++from)
    for (Rank to = 0; to < 2; ++to)
      for (int part = 0; part < 2; ++part)
        schedule.copy(from, {Buffer::input, part}, to, {Buffer::output, 2 * from + part});
  Plans plans;
  for (Rank rank = 0; rank < 2; ++rank) {
    const Rank peer = 1 - rank;
    PlanWriter w(schedule, rank, Access::slots, 1);
    for (int part = 0; part < 2; ++part)
      w.acquire(peer, 1).copy(input(part), {output(2 * rank + part), slot(peer, 0)}, part).commit(peer);
    for (int part = 0; part < 2; ++part)
      w.peek(peer, 1).copy(slot(peer, 0), {output(2 * peer + part)}, part).release(peer);
    plans.push_back(w.settle(peer).plan());
  }
  EXPECT_EQ(text(check(schedule, plans, {.slots = 2})), "");
  expect_refused(check(schedule, plans, {.slots = 1}), "deadlock: acquire with rank");
  expect_refused(check(schedule, plans, {.slots = 0}), "deadlock: acquire with rank");
}

TEST(Check, SettleWaitsWhereThereAreNoSlots) {
  const Schedule schedule = chain_schedule();
  Plans plans = chain_plans(schedule);
  // Rank 0 sends both blocks to rank 1, then lets rank 2 go on, which rank 1 has not settled with before it frees rank
  // 0.
  PlanWriter first(schedule, 0, Access::slots, 1);
  PlanWriter middle(schedule, 1, Access::slots, 1);
  PlanWriter end(schedule, 2, Access::slots, 1);
  end.peek(0, 0).release(0);
  for (int block = 0; block < 2; ++block) {
    first.acquire(1, 1).copy(input(block), {output(block), slot(1, 0)}, block).commit(1);
    middle.peek(0, 1).acquire(2, 1).copy(slot(0, 0), {output(block), slot(2, 0)}, block);
    middle.commit(2).settle(2).release(0);
    end.peek(1, 1).copy(slot(1, 0), {output(block)}, block).release(1);
  }
  first.acquire(2, 0).commit(2).settle(1).settle(2);
  plans = {first.plan(), middle.plan(), end.plan()};
  EXPECT_EQ(text(check(schedule, plans, {.slots = 2})), "");
  EXPECT_EQ(text(check(schedule, plans, {.slots = 1})), "");
  expect_refused(check(schedule, plans, {.slots = 0}), "deadlock");
}

TEST(Check, SeesWhatOnlyInPlaceGoesWrong) {
  // Each rank copies its own input to its output, while the peer reads that input: harmless but in place.
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  for (Rank to = 0; to < 2; ++to)
    for (Rank from = 0; from < 2; ++from) schedule.reduce(from, {Buffer::input, 0}, to, {Buffer::output, 0}, from);
  Plans plans;
  for (Rank rank = 0; rank < 2; ++rank) {
    PlanWriter w(schedule, rank, Access::mapped);
    const Place mine = contributed(input(0));
    const Place theirs = contributed(at_peer(Where::peer_input, 1 - rank, 0));
    if (rank == 0)
      w.reduce({mine, theirs}, {output(0)}).last();
    else
      w.reduce({theirs, mine}, {output(0)}).last();
    plans.push_back(w.signal(1 - rank).wait(1 - rank).plan());
  }
  EXPECT_EQ(text(check(schedule, plans, {.in_place = {}})), "");
  expect_refused(check(schedule, plans, {.in_place = {true, true}}), "race");
  expect_refused(check(schedule, plans, {.in_place = {false, true}}), "race");
}

TEST(Check, LinesMustBeWaitedFor) {
  const Schedule schedule = exchange_schedule();
  Plans plans;
  for (Rank rank = 0; rank < 2; ++rank) {
    const Place mine = contributed(input(0));
    const Place theirs = at_peer(Where::peer_payload, 1 - rank, 0);
    PlanWriter w(schedule, rank, Access::in_line);
    w.wait_descriptor(1 - rank);
    if (rank == 0)
      w.reduce({mine, theirs}, {output(0)}).last();
    else
      w.reduce({theirs, mine}, {output(0)}).last();
    plans.push_back(w.plan());
  }
  EXPECT_EQ(text(check_all(schedule, plans)), "");
  drop(plans[1], Verb::wait_descriptor);
  expect_refused(check_all(schedule, plans), "not waited for");
}

TEST(Check, StaleScratchIsNothing) {
  Schedule schedule({.collective = Collective::broadcast, .ranks = 1}, 1);
  schedule.copy(0, {Buffer::input, 0}, 0, {Buffer::scratch, 0});
  schedule.next_step();
  schedule.copy(0, {Buffer::scratch, 0}, 0, {Buffer::output, 0});
  PlanWriter w(schedule, 0, Access::slots, 1);
  w.copy(scratch(0), {output(0)}).copy(input(0), {scratch(0)});
  expect_refused(check_all(schedule, {w.plan()}), "nothing was written");
}

TEST(Check, ManySourcesAreAChain) {
  constexpr int ranks = 20;
  Schedule schedule({.collective = Collective::reduce, .ranks = ranks}, 1);
  for (Rank from = 0; from < ranks; ++from) schedule.reduce(from, {Buffer::input, 0}, 0, {Buffer::output, 0}, from);
  const auto plans_cut_at = [&schedule](Rank cut) {
    Plans plans;
    Plan root = PlanWriter(schedule, 0, Access::cma).plan();
    const auto pass = [&root](Rank begin, Rank end) {
      const auto first = static_cast<std::uint32_t>(root.places.size());
      if (begin > 0) root.places.push_back(sum_of(begin, output(0)));
      for (Rank rank = begin; rank < end; ++rank)
        root.places.push_back(contributed(rank == 0 ? input(0) : at_peer(Where::peer_input, rank, 0)));
      const auto sources = static_cast<std::uint16_t>(root.places.size() - first);
      root.places.push_back(output(0));
      root.actions.push_back({.verb = Verb::reduce,
                              .last = static_cast<std::uint8_t>(end == ranks),
                              .sources = sources,
                              .destinations = 1,
                              .first = first,
                              .halvings = static_cast<std::uint32_t>(halvings_of(end))});
    };
    pass(0, cut);
    pass(cut, ranks);
    for (Rank rank = 1; rank < ranks; ++rank)
      root.actions.push_back({.verb = Verb::signal, .peer = static_cast<std::uint16_t>(rank)});
    plans.push_back(root);
    for (Rank rank = 1; rank < ranks; ++rank) plans.push_back(PlanWriter(schedule, rank, Access::cma).wait(0).plan());
    return plans;
  };
  EXPECT_EQ(text(check(schedule, plans_cut_at(16), {})), "");
  expect_refused(check(schedule, plans_cut_at(12), {}), "the schedule makes");
  expect_refused(check(schedule, plans_cut_at(17), {}), "wrong number of sources");
}

TEST(Check, RefusesAScheduleThatIsWrongItself) {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  for (Rank to = 0; to < 2; ++to)
    for (Rank from = 0; from < 2; ++from) schedule.reduce(0, {Buffer::input, 0}, to, {Buffer::output, 0}, from);
  expect_refused(check_all(schedule, exchange_plans(schedule)), "schedule: output block 0 ends as (0.0 + 0.0)");
}

TEST(Check, AcceptsAWindowPlanAfterAFifoPlan) {
  const Schedule exchange = exchange_schedule(), halves = halves_schedule();
  const Plans through_slots = exchange_plans(exchange), through_windows = halves_plans(halves);
  const CheckedCall calls[] = {{.schedule = &exchange, .plans = through_slots, .in_place = {}},
                               {.schedule = &halves, .plans = through_windows, .in_place = {true, false}}};
  EXPECT_EQ(text(check(calls, {.calls = 3})), "");
}

/// Each number of messages and of flags is right over both calls, so only their order tells.
TEST(Check, RefusesWhatAnEarlierPlanLeftOver) {
  const Schedule exchange = exchange_schedule();
  Plans sends_more = exchange_plans(exchange), takes_more = sends_more;
  sends_more[0] = send_and_add(exchange, 0).acquire(1, 0).commit(1).plan();
  takes_more[1] = PlanWriter(send_and_add(exchange, 1)).peek(0, 0).release(0).plan();
  const CheckedCall calls[] = {{.schedule = &exchange, .plans = sends_more, .in_place = {}},
                               {.schedule = &exchange, .plans = takes_more, .in_place = {}}};
  expect_refused(check(calls, {.slots = 4, .channels = 1, .tiles = 1}), "message of call 0");
}

/// A rank that does not wait at the end of one call is seen in the next one, of another plan.
TEST(Check, RefusesMemoryThatAnEarlierPlanStillUses) {
  const Schedule exchange = exchange_schedule(), halves = halves_schedule();
  const Plans through_slots = exchange_plans(exchange);
  Plans through_windows = halves_plans(halves);
  drop(through_windows[1], Verb::signal);
  drop(through_windows[0], Verb::wait);
  const CheckedCall calls[] = {{.schedule = &halves, .plans = through_windows, .in_place = {}},
                               {.schedule = &exchange, .plans = through_slots, .in_place = {}}};
  expect_refused(check(calls, {.calls = 1}), "race");
}

TEST(Check, SaysHowManyChannelsMustBeResident) {
  const Schedule exchange = exchange_schedule();
  const Plans both = exchange_plans(exchange);
  const auto of = [&](int channels) {
    return *residency(exchange, both, {.slots = 2, .channels = channels, .tiles = 8});
  };
  EXPECT_EQ(of(1).channels, 2);
  EXPECT_EQ(of(1).resident, 2);
  EXPECT_EQ(of(4).channels, 8);
  EXPECT_EQ(of(4).resident, 5) << "four may wait for their other halves, and the fifth place is for one of these";

  Schedule one_way({.collective = Collective::broadcast, .ranks = 2}, 1);
  one_way.copy(0, {Buffer::input, 0}, 0, {Buffer::output, 0});
  one_way.copy(0, {Buffer::input, 0}, 1, {Buffer::output, 0});
  const Plans sent{PlanWriter(one_way, 0, Access::slots, 1)
                       .acquire(1, 1)
                       .copy(input(0), {slot(1, 0)})
                       .commit(1)
                       .copy(input(0), {output(0)})
                       .settle(1)
                       .plan(),
                   PlanWriter(one_way, 1, Access::slots, 1).peek(0, 1).copy(slot(0, 0), {output(0)}).release(0).plan()};
  const auto with = [&](int tiles) { return residency(one_way, sent, {.slots = 2, .channels = 1, .tiles = tiles}); };
  EXPECT_EQ(with(2)->resident, 2) << "the receiver may wait for the sender";
  EXPECT_EQ(with(3)->resident, 2);
}

TEST(Check, CasesCoverSlotsAndPlaces) {
  EXPECT_EQ(check_cases(Collective::all_reduce, 4, Access::slots).size(), 9u);
  EXPECT_EQ(check_cases(Collective::all_reduce, 4, Access::mapped).size(), 3u);
  EXPECT_EQ(check_cases(Collective::broadcast, 4, Access::slots).size(), 6u);
  EXPECT_EQ(check_cases(Collective::all_to_all, 4, Access::slots).size(), 3u);
  EXPECT_EQ(check_cases(Collective::barrier, 4, Access::in_line).size(), 1u);
}

}  // namespace
}  // namespace tutti
