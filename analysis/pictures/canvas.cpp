#include "analysis/pictures/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.h"

namespace tutti::topology {

void Canvas::rectangle(const Box& box, double corner, std::string_view style) {
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\" class=\"{}\"/>\n",
                  box.x, box.y, box.width, box.height, corner, style);
}

void Canvas::line(Point from, Point to, double width, std::string_view style) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"{:.1f}\" class=\"{}\"/>\n", from.x,
      from.y, to.x, to.y, width, style);
}

void Canvas::text(Point at, std::string_view text, std::string_view style, std::string_view anchor) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y, style,
                       anchor, escaped(text));
}

void Canvas::arrow(const std::vector<Point>& points, double width, std::string_view colour, bool dashed) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline points=\"");
  for (const Point& point : points) body_ += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  body_.pop_back();
  body_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}/>\n", colour, width,
                       dashed ? " stroke-dasharray=\"7 5\"" : "");
  const std::size_t half = points.size() / 2;
  const Point from = points[half - 1], to = points[half];
  arrowhead({(from.x + to.x) / 2, (from.y + to.y) / 2}, {to.x - from.x, to.y - from.y}, 3.5 + width, colour);
}

void Canvas::arrowhead(Point middle, Point direction, double size, std::string_view colour) {
  const double length = std::hypot(direction.x, direction.y);
  if (length < 1) return;
  const double x = direction.x / length, y = direction.y / length;
  const Point tip{middle.x + x * size, middle.y + y * size};
  const Point back{tip.x - x * 2 * size, tip.y - y * 2 * size};
  body_ += fmt::format("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"{}\"/>\n", tip.x, tip.y,
                       back.x - y * size * 0.8, back.y + x * size * 0.8, back.x + y * size * 0.8,
                       back.y - x * size * 0.8, colour);
}

void Canvas::curve(Point from, Point bend, Point to, double width, std::string_view colour) {
  body_ += fmt::format(
      "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\"/>\n",
      from.x, from.y, bend.x, bend.y, to.x, to.y, colour, width);
  arrowhead({(from.x + 2 * bend.x + to.x) / 4, (from.y + 2 * bend.y + to.y) / 4}, {to.x - from.x, to.y - from.y},
            3 + width, colour);
}

void Canvas::route(const std::vector<Point>& way, double width, std::string_view colour) {
  constexpr double round = 7;
  std::vector<Point> points;  // without those on a straight line between their neighbours
  for (const Point& point : way) {
    const auto goes_on = [&](double Point::*axis) {
      return points[points.size() - 2].*axis == points.back().*axis && points.back().*axis == point.*axis;
    };
    while (points.size() > 1 && (goes_on(&Point::x) || goes_on(&Point::y))) points.pop_back();
    points.push_back(point);
  }
  if (points.size() < 2) return;
  const auto length = [](Point a, Point b) { return std::hypot(b.x - a.x, b.y - a.y); };
  const auto along = [&](Point from, Point to) {  // a little way from one to the other
    const double whole = length(from, to), part = whole > 0 ? std::min(round, whole / 2) / whole : 0;
    return Point{from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part};
  };
  body_ += fmt::format("<path d=\"M{:.1f} {:.1f}", points[0].x, points[0].y);
  std::size_t longest = 1;
  for (std::size_t at = 1; at < points.size(); ++at) {
    const Point before = along(points[at], points[at - 1]);
    if (at + 1 < points.size()) {
      const Point after = along(points[at], points[at + 1]);
      body_ += fmt::format("L{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", before.x, before.y, points[at].x, points[at].y,
                           after.x, after.y);
    } else {
      body_ += fmt::format("L{:.1f} {:.1f}", points[at].x, points[at].y);
    }
    if (length(points[at - 1], points[at]) > length(points[longest - 1], points[longest])) longest = at;
  }
  body_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", colour, width);
  const Point a = points[longest - 1], b = points[longest];
  arrowhead({(a.x + b.x) / 2, (a.y + b.y) / 2}, {b.x - a.x, b.y - a.y}, 3 + width, colour);
}

void Canvas::swatch(const Box& box, std::string_view colour) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\"/>\n",
                       box.x, box.y, box.width, box.height, colour);
}

void Canvas::begin(std::string_view title) {
  body_ += fmt::format("<g><title>{}</title>\n", escaped(title));
}

void Canvas::end() {
  body_ += "</g>\n";
}

std::string Canvas::finish(double width, double height, std::string_view style, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">"
      "\n<title>{2}</title>\n<style>\n{3}</style>\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#fcfcfa\"/>\n"
      "{4}</svg>\n",
      std::ceil(width), std::ceil(height), escaped(title), style, body_);
}

double text_width(std::string_view text, double size) {
  return static_cast<double>(text.size()) * size * 0.6;
}

std::string shortened(std::string_view text, std::size_t letters) {
  std::vector<std::size_t> ends;  // position after each letter
  for (std::size_t at = 0; at < text.size(); ends.push_back(at)) at += std::max<std::size_t>(letter_bytes(text, at), 1);
  if (ends.size() <= letters) return std::string(text);
  return std::string(text.substr(0, ends[letters - 2])) + "…";
}

}  // namespace tutti::topology
