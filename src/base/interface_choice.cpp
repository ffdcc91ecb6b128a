#include "base/interface_choice.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace tutti {
namespace {

/// TUTTI_SOCKET_IFNAME, parsed: ^ and = apply to the whole list.
struct NameList {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string> names;

  explicit NameList(std::string_view text) {
    if (text.starts_with('^')) exclude = true, text.remove_prefix(1);
    if (text.starts_with('=')) exact = true, text.remove_prefix(1);
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      std::string_view name = text.substr(0, comma);
      text.remove_prefix(std::min(comma + 1, text.size()));
      while (name.starts_with(' ')) name.remove_prefix(1);
      while (name.ends_with(' ')) name.remove_suffix(1);
      if (!name.empty()) names.emplace_back(name);
    }
  }

  bool filtered() const { return !names.empty() && !exclude; }

  /// Index of the list's entry that matches it.
  std::optional<int> place_of(std::string_view interface) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (exact ? interface == names[i] : interface.starts_with(names[i])) return static_cast<int>(i);
    return std::nullopt;
  }
};

/// Smaller is better; only addresses of the smallest class are used.
struct Class {
  int value;
  const char* why;  ///< the reason to leave it out if a smaller class exists
};

Class class_of(const InterfaceAddress& one, bool filtered) {
  if (one.link_local) return {10, "link-local, other interfaces of other hosts cannot tell where it is"};
  if (filtered) return {0, ""};
  switch (one.kind) {
    case InterfaceKind::device: return {0, ""};
    case InterfaceKind::tunnel: return {1, "a tunnel, used where there is no device"};
    case InterfaceKind::pair: return {2, "a veth pair, used where there is nothing better"};
    case InterfaceKind::bridge: return {3, "a bridge without a device, used where there is nothing better"};
    case InterfaceKind::dummy: return {4, "a dummy, used where there is nothing better"};
    case InterfaceKind::loopback: return {11, "loopback, reaches only this host"};
  }
  return {12, ""};
}

/// The largest class_of that leads to other hosts: interfaces the user named, devices, and tunnels and veth pairs,
/// which containers have.
constexpr int leads_to_others_max = 2;

std::string why_not(const InterfaceAddress& one, const NameList& names, const InterfaceFilter& filter) {
  const auto place = names.place_of(one.interface);
  if (names.exclude && place) return fmt::format("excluded by TUTTI_SOCKET_IFNAME={}", filter.names);
  if (names.filtered() && !place) return fmt::format("not in TUTTI_SOCKET_IFNAME={}", filter.names);
  if (filter.family == (one.ipv6 ? "AF_INET" : "AF_INET6")) return fmt::format("TUTTI_SOCKET_FAMILY={}", filter.family);
  if (!one.up) return "down or without a carrier";
  return {};
}

std::string described(const InterfaceAddress& one) {
  return fmt::format("{} {}", one.interface, one.address);
}

}  // namespace

std::vector<std::string> InterfaceChoice::used_text() const {
  std::vector<std::string> lines;
  for (const auto& one : used)
    lines.push_back(one.mbps > 0 ? fmt::format("{} ({}, {} Mbit/s)", described(one), text(one.kind), one.mbps)
                                 : fmt::format("{} ({})", described(one), text(one.kind)));
  return lines;
}

std::vector<std::string> InterfaceChoice::left_out_text() const {
  std::vector<std::string> lines;
  for (const auto& [address, why] : left_out) lines.push_back(fmt::format("{}: {}", described(address), why));
  return lines;
}

Result<InterfaceChoice> choose_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter) {
  const NameList names(filter.names);
  InterfaceChoice choice;
  std::vector<InterfaceAddress> good;
  for (const auto& one : all) {
    auto why = why_not(one, names, filter);
    if (why.empty())
      good.push_back(one);
    else
      choice.left_out.push_back({one, std::move(why)});
  }
  const bool filtered = names.filtered();
  const auto rank = [&](const InterfaceAddress& one) {
    const int place = filtered ? names.place_of(one.interface).value_or(0) : 0;
    return std::tuple(class_of(one, filtered).value, place, -one.mbps, one.ipv6);
  };
  std::ranges::stable_sort(good, {}, rank);
  for (const auto& one : good) {
    const auto same = [&](const InterfaceAddress& other) {
      return other.interface == one.interface && other.ipv6 == one.ipv6;
    };
    const Class is = class_of(one, filtered);
    if (!choice.used.empty() && is.value != class_of(choice.used.front(), filtered).value)
      choice.left_out.push_back({one, is.why});
    else if (std::ranges::any_of(choice.used, same))
      choice.left_out.push_back({one, "another address of this interface is used"});
    else
      choice.used.push_back(one);
  }
  if (!choice.used.empty()) return choice;
  std::string reasons;
  for (const auto& line : choice.left_out_text()) reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", line);
  return Error{.code = Code::invalid_usage,
               .what = fmt::format("no network interface to use: {}", reasons.empty() ? "there is none" : reasons)};
}

std::vector<std::string> awaited_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter) {
  const NameList names(filter.names);
  std::vector<std::string> awaited;
  for (const auto& one : all) {
    InterfaceAddress soon = one;
    soon.up = true;
    if (!why_not(soon, names, filter).empty() || class_of(one, names.filtered()).value > leads_to_others_max) continue;
    if (one.up) return {};
    awaited.push_back(described(one));
  }
  return awaited;
}

}  // namespace tutti
