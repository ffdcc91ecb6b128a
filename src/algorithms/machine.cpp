#include "algorithms/machine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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
  for (auto* number : {&machine.hop_us, &machine.switch_us, &machine.enter_us, &machine.line_us, &machine.pass_us,
                       &machine.message_us, &machine.pull_us, &machine.pull_gbps, &machine.nontemporal_gbps})
    visit(*number);
  for (auto* rates : {&machine.read, &machine.write, &machine.far_read, &machine.far_write})
    for (auto& number : rates->gbps) visit(number);
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

std::array<double, Machine::count> Machine::numbers() const {
  std::array<double, count> all{};
  auto to = all.begin();
  each(*this, [&](double number) { *to++ = number; });
  return all;
}

Machine over_sockets() {
  Machine machine;
  machine.hop_us = 15;
  machine.message_us = 1.5;
  machine.far_read = {.gbps = {2.5, 2.5, 2.5, 2.5, 2.5}};
  machine.far_write = {.gbps = {2.5, 2.5, 2.5, 2.5, 2.5}};
  return machine;
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
