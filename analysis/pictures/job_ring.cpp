// Draws the ring of a job: inside hosts from rank to rank, between hosts through the gutters of the grid.
#include <algorithm>
#include <cmath>

#include "analysis/pictures/job_picture.h"

namespace tutti::topology {
namespace {

constexpr std::string_view inside = "#4a7fd0", between = "#b8408a";
constexpr double inside_width = 2.4, between_width = 2.6, below_chips = chip_height / 2 + 7;
constexpr std::size_t bends_max = 128;  // ranks of a host; with more, lines are straight
constexpr int tracks = 6;               // lines side by side in a gutter

/// The distance of a point from the line between two others.
double distance(Point p, Point a, Point b) {
  const double x = b.x - a.x, y = b.y - a.y, length = x * x + y * y;
  const double t = length > 0 ? std::clamp(((p.x - a.x) * x + (p.y - a.y) * y) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * x, p.y - a.y - t * y);
}

class Ring {
 public:
  Ring(Canvas& canvas, const Job& job, const JobLayout& layout) : canvas_(canvas), job_(job), layout_(layout) {
    chips_in_.resize(job.hosts.size());
    for (std::size_t rank = 0; rank < layout.chips.size(); ++rank)
      if (layout.chips[rank].width > 0)
        chips_in_[static_cast<std::size_t>(job.locations[rank].host)].push_back(static_cast<int>(rank));
  }

  void draw() {
    const std::vector<int>& order = job_.order;
    if (order.size() < 2) return;
    for (std::size_t at = 0; at < order.size(); ++at) {
      const int from = order[at], to = order[(at + 1) % order.size()];
      const int one = box_of(from), two = box_of(to);
      if (one != two)
        cross(from, to);
      else if (drawn(from))
        step(from, to);
    }
  }

 private:
  int box_of(int rank) const { return layout_.box_of_host[static_cast<std::size_t>(job_.host_of(rank))]; }
  bool drawn(int rank) const { return layout_.chips[static_cast<std::size_t>(rank)].width > 0; }
  Point middle(int rank) const { return layout_.chips[static_cast<std::size_t>(rank)].middle(); }
  const JobHostBox& host(int rank) const { return layout_.hosts[static_cast<std::size_t>(box_of(rank))]; }
  const std::vector<int>& beside(int rank) const { return chips_in_[static_cast<std::size_t>(job_.host_of(rank))]; }

  /// Whether a line comes too near to a rank that it does not lead to.
  bool blocked(int from, int to, Point a, Point b) const {
    return std::ranges::any_of(beside(from), [&](int rank) {
      return rank != from && rank != to && distance(middle(rank), a, b) < chip_height / 2 + 1.5;
    });
  }

  bool way_blocked(int from, int to, const std::vector<Point>& way) const {
    for (std::size_t at = 1; at < way.size(); ++at)
      if (blocked(from, to, way[at - 1], way[at])) return true;
    return false;
  }

  bool bend_blocked(int from, int to, Point bend) const {
    const Point a = middle(from), b = middle(to);
    std::vector<Point> way{a};
    for (int i = 1; i <= 16; ++i) {
      const double t = i / 16.0, u = 1 - t;
      way.push_back({u * u * a.x + 2 * u * t * bend.x + t * t * b.x, u * u * a.y + 2 * u * t * bend.y + t * t * b.y});
    }
    return way_blocked(from, to, way);
  }

  /// To a rank of another row: along the room below the upper one, or left of all ranks. Empty: others are in the way.
  std::vector<Point> around(int from, int to) const {
    const Point a = middle(from), b = middle(to);
    if (std::abs(a.y - b.y) < chip_height) return {};
    const double y = std::min(a.y, b.y) + below_chips;
    std::vector<Point> way{a, {a.x, y}, {b.x, y}, b};
    if (!way_blocked(from, to, way)) return way;
    double left = b.x;
    for (const int rank : beside(from)) left = std::min(left, layout_.chips[static_cast<std::size_t>(rank)].x - 6);
    way = {a, {a.x, a.y + below_chips}, {left, a.y + below_chips}, {left, b.y}, b};
    return way_blocked(from, to, way) ? std::vector<Point>{} : way;
  }

  void step(int from, int to) {
    const Point a = middle(from), b = middle(to);
    const bool busy = beside(from).size() > bends_max;
    if (busy || !blocked(from, to, a, b)) return canvas_.arrow({a, b}, inside_width, inside, false);
    if (const auto way = around(from, to); !way.empty()) return canvas_.route(way, inside_width, inside);
    const double length = std::hypot(b.x - a.x, b.y - a.y), x = (b.x - a.x) / length, y = (b.y - a.y) / length;
    Point bend = a;
    // Towards the lower side first: there is room below the ranks.
    const double side = x >= 0 ? 1 : -1;
    for (const double depth : {30.0, -30.0, 44.0, -44.0, 64.0, -64.0, 90.0, -90.0}) {
      bend = {(a.x + b.x) / 2 - y * depth * side, (a.y + b.y) / 2 + x * depth * side};
      if (!bend_blocked(from, to, bend)) break;
    }
    canvas_.curve(a, bend, b, inside_width, inside);
  }

  /// From a rank to the edge of its host at `x`: straight where no other rank is in the way, else below its row.
  std::vector<Point> to_edge(int rank, double x) const {
    const Point at = middle(rank);
    if (!blocked(rank, rank, at, {x, at.y})) return {at, {x, at.y}};
    return {at, {at.x, at.y + below_chips}, {x, at.y + below_chips}};
  }

  /// Out on the right, in on the left, between them along the gutters.
  void cross(int from, int to) {
    const JobHostBox &one = host(from), &two = host(to);
    const Box &a = one.whole.box, &b = two.whole.box;
    std::vector<Point> way =
        drawn(from) ? to_edge(from, a.x + a.width) : std::vector{Point{a.x + a.width, a.middle().y}};
    std::vector<Point> in = drawn(to) ? to_edge(to, b.x) : std::vector{Point{b.x, b.middle().y}};
    // Other lines than those from a row to the next keep to the outside, so that they do not lie on them.
    const bool far = two.row != one.row + 1;
    const double track = (crossings_++ % tracks) / static_cast<double>(tracks);
    const double right = a.x + a.width + layout_.gutter * (0.3 + 0.5 * track);
    const bool next = one.row == two.row && one.column + 1 == two.column;
    const double left = next ? right : b.x - layout_.gutter * (far ? 0.85 - 0.15 * track : 0.6 - 0.4 * track);
    way.push_back({right, way.back().y});
    if (!next) {
      const double y = a.y + a.height + layout_.gutter * (0.3 + 0.5 * track);
      way.push_back({right, y});
      way.push_back({left, y});
    }
    way.push_back({left, in.back().y});
    way.insert(way.end(), in.rbegin(), in.rend());
    canvas_.route(way, between_width, between);
  }

  Canvas& canvas_;
  const Job& job_;
  const JobLayout& layout_;
  std::vector<std::vector<int>> chips_in_;  // by host
  int crossings_ = 0;
};

}  // namespace

void draw_ring(Canvas& canvas, const Job& job, const JobLayout& layout) {
  Ring(canvas, job, layout).draw();
}

}  // namespace tutti::topology
