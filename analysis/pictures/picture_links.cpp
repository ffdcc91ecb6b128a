// Draws NVLinks and the rings on them, as a graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "analysis/pictures/picture.h"
#include "base/printable.h"

namespace tutti::topology {
namespace {

constexpr double gpu_width = 58, gpu_height = 28, line_height = 17;
constexpr std::string_view colours[] = {"#3b6fb6", "#d9514e", "#2f8f4e", "#c9a227",
                                        "#8e4fa8", "#e5803a", "#3aa6b9", "#7a7a7a"};

std::string_view colour(std::size_t at) {
  return colours[at % std::size(colours)];
}

/// Paths in one colour: a ring or a tree, and the number of equal ones.
struct Route {
  std::vector<std::pair<int, int>> hops;  // positions on the circle
  int times = 1;
  std::string said;
};

class Drawing {
 public:
  Drawing(Canvas& canvas, const Topology& topology, const Search& search, Point corner)
      : canvas_(canvas), topology_(topology), search_(search), gpus_(topology.gpus()), corner_(corner) {
    const auto count = static_cast<double>(gpus_.size());
    radius_ = gpus_.size() == 2 ? 110 : std::clamp(count * 24, 120.0, 300.0);
    for (std::size_t at = 0; at < gpus_.size(); ++at) place_[topology[gpus_[at]].index] = static_cast<int>(at);
    for (const int a : gpus_)
      for (const int b : gpus_) most_ = std::max(most_, topology.direct_links(a, b));
  }
  Box draw();

 private:
  Point middle() const { return {corner_.x + radius_ + gpu_width / 2, corner_.y + radius_ + gpu_height}; }
  Point at(int place) const;
  double unit() const { return std::clamp(22.0 / (2 * std::max(most_, 1)), 0.8, 3.2); }
  void bands();
  void fabric();
  void routes();
  void hops();
  Box legend(Point corner);

  Canvas& canvas_;
  const Topology& topology_;
  const Search& search_;
  std::vector<int> gpus_;
  Point corner_;
  double radius_ = 0;
  int most_ = 0;
  std::map<int, int> place_;  // by number of the GPU
  std::vector<Route> routes_;
};

/// Clockwise from the top left; two GPUs are side by side.
Point Drawing::at(int place) const {
  const auto count = static_cast<double>(gpus_.size());
  const double first = gpus_.size() == 2 ? std::numbers::pi : -std::numbers::pi / 2 - std::numbers::pi / count;
  const double angle = first + 2 * std::numbers::pi * place / count;
  return {middle().x + radius_ * std::cos(angle), middle().y + radius_ * std::sin(angle)};
}

/// A link is as wide as two arrows, one per direction.
void Drawing::bands() {
  for (std::size_t a = 0; a < gpus_.size(); ++a)
    for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
      const int there = topology_.direct_links(gpus_[a], gpus_[b]), back = topology_.direct_links(gpus_[b], gpus_[a]);
      if (std::max(there, back) == 0) continue;
      canvas_.begin(
          fmt::format("{} to {}: {} links", topology_[gpus_[a]].name, topology_[gpus_[b]].name, std::min(there, back)));
      canvas_.line(at(static_cast<int>(a)), at(static_cast<int>(b)), std::max(2 * unit() * std::max(there, back), 4.0),
                   there == back ? "band" : "band odd");
      canvas_.end();
    }
}

/// NVSwitches are in the centre.
void Drawing::fabric() {
  const std::vector<int> switches = topology_.of_kind(DeviceKind::nvswitch);
  std::map<int, Point> places;
  const double count = static_cast<double>(switches.size());
  const double inner = switches.size() < 2 ? 0 : std::min(radius_ * 0.42, 26 + count * 12);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / count + std::numbers::pi / 4;
    places[switches[i]] = {middle().x + inner * std::cos(angle), middle().y + inner * std::sin(angle)};
  }
  for (std::size_t a = 0; a < gpus_.size(); ++a)
    for (const Link& link : topology_.links)
      if (link.from == gpus_[a] && places.contains(link.to))
        canvas_.line(at(static_cast<int>(a)), places[link.to], std::clamp(0.6 * link.count, 1.0, 11.0), "band");
  for (const auto& [id, point] : places) {
    canvas_.rectangle({point.x - 26, point.y - 11, 52, 22}, 5, "switch");
    const std::string& called = topology_[id].name;
    const auto number = std::ranges::find(switches, id) - switches.begin();
    canvas_.text({point.x, point.y + 4},
                 called.starts_with("NVS") ? shortened(called, 8) : fmt::format("NVS{}", number), "switch-name",
                 "middle");
  }
}

/// The coloured routes: rings, or if no ring of NVLinks passes all GPUs, the trees of the first root.
void Drawing::routes() {
  if (!search_.trees.empty() && search_.rings.kind != PathKind::nvl) {
    for (const ChosenTree& tree : search_.trees) {
      if (tree.root != search_.trees.back().root) continue;
      Route route{.said = fmt::format("tree of GPU {}, {:.3g} GB/s", tree.root, tree.gbps)};
      for (std::size_t i = 0; i < tree.gpus.size(); ++i)
        if (tree.parent[i] >= 0) route.hops.emplace_back(place_.at(tree.parent[i]), place_.at(tree.gpus[i]));
      routes_.push_back(std::move(route));
    }
    return;
  }
  std::map<std::vector<int>, int> times;
  for (const auto& order : search_.rings.orders) ++times[order];
  for (const auto& [order, count] : times) {
    Route route{.times = count};
    route.said = count > 1 ? fmt::format("{} × ", count) : std::string();
    route.said += joined(order, " → ");
    for (std::size_t i = 0; i < order.size(); ++i)
      route.hops.emplace_back(place_.at(order[i]), place_.at(order[(i + 1) % order.size()]));
    routes_.push_back(std::move(route));
  }
}

/// Routes between the same pair are side by side.
void Drawing::hops() {
  struct Lane {
    std::size_t route;
    bool forward;
    double width;
  };
  std::map<std::pair<int, int>, std::vector<Lane>> pairs;
  const bool direct = most_ > 0;
  for (std::size_t i = 0; i < routes_.size(); ++i)
    for (const auto& [from, to] : routes_[i].hops) {
      const double each = direct ? unit() : 0.4;
      const double width = std::clamp(each * routes_[i].times, 1.6, direct ? 12.0 : 7.0);
      pairs[{std::min(from, to), std::max(from, to)}].push_back({i, from < to, width});
    }
  const bool dashed = search_.rings.kind != PathKind::nvl && search_.trees.empty();
  for (const auto& [pair, lanes] : pairs) {
    const Point a = at(pair.first), b = at(pair.second);
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    const Point across{-(b.y - a.y) / length, (b.x - a.x) / length};
    double whole = 0;
    for (const Lane& lane : lanes) whole += lane.width + 0.8;
    double offset = -whole / 2;
    for (const Lane& lane : lanes) {
      const double aside = offset + lane.width / 2;
      offset += lane.width + 0.8;
      Point from{a.x + across.x * aside, a.y + across.y * aside}, to{b.x + across.x * aside, b.y + across.y * aside};
      if (!lane.forward) std::swap(from, to);
      constexpr double head = 0.66;  // not at the middle, where all lines cross
      const Point turn{from.x + (to.x - from.x) * head, from.y + (to.y - from.y) * head};
      canvas_.arrow({from, turn, to}, lane.width, colour(lane.route), dashed);
    }
  }
}

Box Drawing::legend(Point corner) {
  std::vector<std::string> lines;
  const Channels& rings = search_.rings;
  if (!rings.orders.empty())
    lines.push_back(fmt::format("{} ring{} of {:.4g} GB/s: {:.5g} GB/s by {}", rings.orders.size(),
                                rings.orders.size() > 1 ? "s" : "", rings.gbps_each, rings.gbps(), name(rings.kind)));
  if (search_.ring_gather_gbps > 0)
    lines.push_back(fmt::format("all-gather on rings: {:.5g} GB/s", search_.ring_gather_gbps));
  if (!search_.trees.empty())
    lines.push_back(fmt::format("all-gather on {} trees: {:.5g} GB/s", search_.trees.size(), search_.tree_gather_gbps));
  if (search_.bound_gbps > 0) lines.push_back(fmt::format("least cut allows: {:.5g} GB/s", search_.bound_gbps));
  Box room{corner.x, corner.y, 0, 0};
  double y = corner.y + 12;
  for (std::size_t i = 0; i < lines.size(); ++i, y += line_height) {
    canvas_.text({corner.x, y}, lines[i], i == 0 ? "title" : "text");
    room.width = std::max(room.width, text_width(lines[i], i == 0 ? 13 : 12));
  }
  y += 6;
  constexpr std::size_t routes_shown_max = 18;
  for (std::size_t i = 0; i < std::min(routes_.size(), routes_shown_max); ++i, y += line_height) {
    canvas_.swatch({corner.x, y - 8, 14, 7}, colour(i));
    const std::string said = shortened(routes_[i].said, 96);
    canvas_.text({corner.x + 22, y}, said, "text");
    room.width = std::max(room.width, 22 + text_width(said, 11) * 0.62);
  }
  if (routes_.size() > routes_shown_max) {
    canvas_.text({corner.x, y}, fmt::format("and {} more", routes_.size() - routes_shown_max), "text");
    y += line_height;
  }
  room.height = y - corner.y;
  return room;
}

Box Drawing::draw() {
  if (gpus_.size() < 2) return {corner_.x, corner_.y, 0, 0};
  routes();
  bands();
  fabric();
  hops();
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const Point point = at(static_cast<int>(i));
    canvas_.rectangle({point.x - gpu_width / 2, point.y - gpu_height / 2, gpu_width, gpu_height}, 6, "gpu");
    canvas_.text({point.x, point.y + 4}, shortened(topology_[gpus_[i]].name, 8), "name", "middle");
  }
  const double across = 2 * radius_ + gpu_width, high = 2 * radius_ + 2 * gpu_height;
  const Box words = legend({corner_.x + across + 30, corner_.y + 10});
  return {corner_.x, corner_.y, across + 30 + words.width, std::max(high, words.height + 10)};
}

}  // namespace

Box draw_links(Canvas& canvas, const Topology& topology, const Search& search, Point corner) {
  return Drawing(canvas, topology, search, corner).draw();
}

}  // namespace tutti::topology
