#include "choice/machine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/limits.h"

namespace tutti {
namespace {

constexpr double least = 1e-4, most = 1e5;  // µs and GB/s alike

/// The logarithm to base two, linear between powers of two. It gives the same bits everywhere: ranks that must choose
/// alike may run with different mathematics libraries.
double lg(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return exponent + 2 * fraction - 2;
}

/// Passes every number of `machine` to `visit`, in the order in which they are sent.
template <class M, class Visit>
void each(M& machine, Visit&& visit) {
  for (auto* number : {&machine.hop_us, &machine.switch_us, &machine.enter_us, &machine.setup_us, &machine.line_us,
                       &machine.pass_us, &machine.message_us, &machine.pull.call_us, &machine.pull.apart_gbps})
    visit(*number);
  for (auto& number : machine.pull.bounced_gbps) visit(number);
  for (auto* rates : {&machine.pull.together, &machine.pull.huge_together, &machine.pull.alone,
                      &machine.pull.huge_alone, &machine.read, &machine.write, &machine.far.read, &machine.far.write,
                      &machine.far.streamed_read, &machine.far.streamed_write})
    for (auto& number : rates->gbps) visit(number);
  for (auto& of_class : machine.loops.gbps)
    for (auto& at_footprint : of_class)
      for (auto& number : at_footprint) visit(number);
  for (auto& at_footprint : machine.loops.pulled_gbps)
    for (auto& number : at_footprint) visit(number);
  for (auto* number : {&machine.wire.hop_us, &machine.wire.message_us, &machine.wire.gbps}) visit(*number);
}

/// In the order of `each`.
std::vector<std::string> make_names() {
  std::vector<std::string> all = {"hop_us",  "switch_us",  "enter_us", "setup_us",       "line_us",
                                  "pass_us", "message_us", "pull_us",  "pull_apart_gbps"};
  for (const auto bounce : PullRates::bounce_names) all.push_back(fmt::format("bounced_gbps_{}", bounce));
  for (const char* rates : {"pull", "pull_huge", "pull_alone", "pull_huge_alone", "read", "write", "far_read",
                            "far_write", "streamed_read", "streamed_write"})
    for (const auto footprint : Rates::names) all.push_back(fmt::format("{}_gbps_{}", rates, footprint));
  for (const PassClass& pass : pass_classes)
    for (const auto footprint : LoopFootprints::names)
      for (const auto loop : loop_names) all.push_back(fmt::format("loop_gbps_{}_{}_{}", pass.name, footprint, loop));
  for (const auto footprint : PulledFootprints::names)
    for (const Loop loop : PulledFootprints::loops)
      all.push_back(fmt::format("handed_gbps_{}_{}", footprint, name(loop)));
  all.insert(all.end(), {"wire_hop_us", "wire_message_us", "wire_gbps"});
  return all;
}

}  // namespace

double Rates::us_per_byte(double footprint) const {
  const auto us = [this](std::size_t i) { return 1e-3 / gbps[i]; };
  const auto above =
      std::ranges::find_if(footprints, [&](std::size_t f) { return static_cast<double>(f) >= footprint; });
  const auto i = static_cast<std::size_t>(above - footprints.begin());
  if (i == 0) return us(0);
  if (i == footprints.size()) return us(i - 1);
  const auto below = static_cast<double>(footprints[i - 1]);
  const double share = (lg(footprint) - lg(below)) / (lg(static_cast<double>(footprints[i])) - lg(below));
  return us(i - 1) + share * (us(i) - us(i - 1));
}

LoopTable LoopRates::table() const {
  constexpr double clearly = 1.1;
  constexpr auto index = [](Loop loop) { return static_cast<std::size_t>(loop); };
  LoopTable table;
  for (std::size_t of_class = 0; of_class < gbps.size(); ++of_class)
    for (std::size_t at = 0; at < gbps[of_class].size(); ++at) {
      const OfLoops& rates = gbps[of_class][at];
      const auto faster = [&](Loop one, Loop other) { return rates[index(one)] < rates[index(other)] ? other : one; };
      const Loop simple = faster(Loop::plain, Loop::nontemporal);
      const Loop in_turn = faster(Loop::plain_pages, Loop::nontemporal_pages);
      table.best[of_class][at] = rates[index(in_turn)] > clearly * rates[index(simple)] ? in_turn : simple;
    }
  for (std::size_t at = 0; at < pulled_gbps.size(); ++at) {
    const auto& [plain, nontemporal] = pulled_gbps[at];
    table.pulled[at] = nontemporal > clearly * plain ? Loop::nontemporal : Loop::plain;
  }
  return table;
}

/// That machine used nontemporal stores from 4 MB on, and was faster where pages took turns.
LoopRates Machine::built_in_loops() {
  LoopRates loops;
  for (auto& of_class : loops.gbps)
    of_class = {{{50, 45, 25, 25}, {26, 26, 28, 30}, {16, 16, 20, 22}}};  // as LoopFootprints, by Loop
  loops.pulled_gbps = {{{4, 3}, {4, 3}, {3, 3}, {2, 2.5}}};
  return loops;
}

const std::vector<std::string>& Machine::names() {
  static const std::vector<std::string> all = make_names();
  return all;
}

bool Machine::realigning_pays() const {
  constexpr std::size_t large = 2;  // 1 MiB
  return 1 / pull.together.gbps[large] + 1 / read.gbps[0] + 1 / write.gbps[large] < 1 / pull.apart_gbps;
}

std::size_t PullRates::bounce_bytes() const {
  constexpr double clearly = 1.02;
  std::size_t best = 0;
  for (std::size_t i = 1; i < bounces.size(); ++i)
    if (bounced_gbps[i] > clearly * bounced_gbps[best]) best = i;
  return bounces[best];
}

std::size_t FarRates::streamed_bytes() const {
  // A smaller message waits for memory longer than for a core.
  constexpr std::size_t smallest = 4 << 10, largest = 64 << 10;
  constexpr double clearly = 1.05;
  std::size_t from = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes = largest; bytes >= smallest; bytes /= 2) {
    const auto footprint = static_cast<double>(limits::call_payloads * bytes);
    const double plain = read.us_per_byte(footprint) + write.us_per_byte(footprint);
    const double streamed = streamed_read.us_per_byte(footprint) + streamed_write.us_per_byte(footprint);
    if (plain < clearly * streamed) break;
    from = bytes;
  }
  return from;
}

FarRates::UsPerByte FarRates::message_us_per_byte(double bytes, double footprint, std::size_t streamed_bytes) const {
  const bool streams = bytes >= static_cast<double>(streamed_bytes);
  return {.read = (streams ? streamed_read : read).us_per_byte(footprint),
          .write = (streams ? streamed_write : write).us_per_byte(footprint)};
}

double PullRates::us_per_byte(double footprint, double share) const {
  const double all = together.us_per_byte(footprint), one = alone.us_per_byte(footprint);
  // What the ranks share, such as memory, is as fast for all of them together whatever their number is.
  return std::min(all, std::max(one, share * all));
}

Machine Machine::of_gpu() {
  constexpr double gbps = 1000;
  Machine machine;
  machine.hop_us = 1.5;
  machine.message_us = machine.line_us = 0.02;  // threads of a block look at all peers at once
  machine.pass_us = 0.1;
  for (Rates* rates : {&machine.read, &machine.write, &machine.far.read, &machine.far.write}) rates->gbps.fill(gbps);
  // A pass reads or writes each block once, at the same speed; there is one kind of loop.
  for (auto& of_class : machine.loops.gbps)
    for (auto& at_footprint : of_class) at_footprint.fill(gbps);
  return machine;
}

Machine Machine::on_huge_pages() const {
  Machine other = *this;
  other.pull.together = pull.huge_together;
  other.pull.alone = pull.huge_alone;
  return other;
}

std::array<double, Machine::count> Machine::numbers() const {
  std::array<double, count> all{};
  auto to = all.begin();
  each(*this, [&](double number) { *to++ = number; });
  return all;
}

Result<Machine> Machine::of(std::span<const double> numbers) {
  if (numbers.size() != count)
    return Error{.code = Code::remote,
                 .what = fmt::format("{} numbers of a machine where {} were expected", numbers.size(), count)};
  for (const double number : numbers)
    if (!(number >= least && number <= most))
      return Error{.code = Code::remote, .what = fmt::format("{} is not a possible time or rate of a machine", number)};
  Machine machine;
  auto from = numbers.begin();
  each(machine, [&](double& number) { number = *from++; });
  return machine;
}

}  // namespace tutti
