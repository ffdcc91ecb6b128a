#include "faults.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

namespace tutti::testing::fake_verbs {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Point::count)> names = {
    "open_device",  "alloc_pd",  "reg_mr",    "alloc_mw",  "create_comp_channel", "create_cq", "create_qp", "modify_qp",
    "query_port",   "query_gid", "post_send", "post_recv", "req_notify",          "poll_cq",   "status",    "port_down",
    "device_fatal", "cq_error",  "qp_fatal"};

std::optional<int> errno_of(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) return std::atoi(text.c_str());
  for (int number = 1; number < 134; ++number)
    if (const char* const name = strerrorname_np(number); name != nullptr && text == name) return number;
  return std::nullopt;
}

}  // namespace

bool Faults::add(const std::string& text) {
  std::vector<Fault> added;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ',');) {
    std::istringstream parts(one);
    std::string point, after, what;
    std::getline(parts, point, ':');
    std::getline(parts, after, ':');
    std::getline(parts, what);
    const auto* const name = std::find(names.begin(), names.end(), point);
    const std::uint64_t calls = std::strtoull(after.c_str(), nullptr, 10);
    const bool says_all = point == "port_down" || point == "device_fatal" || point == "cq_error" || point == "qp_fatal";
    const auto number = says_all ? std::optional(1) : errno_of(what);
    if (name == names.end() || calls == 0 || !number || *number == 0) return false;
    added.push_back({static_cast<Point>(name - names.begin()), calls, *number});
  }
  const std::lock_guard guard(lock_);
  faults_.insert(faults_.end(), added.begin(), added.end());
  armed_ = static_cast<int>(faults_.size());
  return true;
}

void Faults::clear() {
  const std::lock_guard guard(lock_);
  faults_.clear();
  armed_ = 0;
}

int Faults::count(Point point) {
  const std::lock_guard guard(lock_);
  int what = 0;
  for (Fault& fault : faults_) {
    if (fault.point != point || fault.after == 0) continue;
    --fault.after;
    if (fault.after == 0) what = fault.what;
  }
  return what;
}

Faults& faults() {
  static auto* const all = new Faults;  // never destroyed: threads use it until the process ends
  return *all;
}

Counters& counters() {
  static auto* const all = new Counters;
  return *all;
}

}  // namespace tutti::testing::fake_verbs
