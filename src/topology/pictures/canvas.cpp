#include "topology/pictures/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/markup.h"

namespace tutti::topology {

void Canvas::rectangle(const Box& box, double corner, std::string_view style) {
  fmt::format_to(std::back_inserter(body_),
                 "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\" class=\"{}\"/>\n",
                 box.x, box.y, box.width, box.height, corner, style);
}

void Canvas::line(Point from, Point to, double width, std::string_view style) {
  fmt::format_to(
      std::back_inserter(body_),
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"{:.1f}\" class=\"{}\"/>\n", from.x,
      from.y, to.x, to.y, width, style);
}

void Canvas::text(Point at, std::string_view text, std::string_view style, std::string_view anchor) {
  fmt::format_to(std::back_inserter(body_),
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y, style,
                 anchor, escaped(text));
}

void Canvas::arrow(const std::vector<Point>& points, double width, std::string_view colour, bool dashed) {
  if (points.size() < 2) return;
  auto out = std::back_inserter(body_);
  fmt::format_to(out, "<polyline points=\"");
  for (const Point& point : points) fmt::format_to(out, "{:.1f},{:.1f} ", point.x, point.y);
  body_.pop_back();
  fmt::format_to(out, "\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}/>\n", colour, width,
                 dashed ? " stroke-dasharray=\"7 5\"" : "");
  const std::size_t half = points.size() / 2;
  const Point from = points[half - 1], to = points[half];
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length < 1) return;
  const double x = (to.x - from.x) / length, y = (to.y - from.y) / length, size = 3.5 + width;
  const Point tip{(from.x + to.x) / 2 + x * size, (from.y + to.y) / 2 + y * size};
  const Point back{tip.x - x * 2 * size, tip.y - y * 2 * size};
  fmt::format_to(out, "<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"{}\"/>\n", tip.x, tip.y,
                 back.x - y * size * 0.8, back.y + x * size * 0.8, back.x + y * size * 0.8, back.y - x * size * 0.8,
                 colour);
}

void Canvas::swatch(const Box& box, std::string_view colour) {
  fmt::format_to(std::back_inserter(body_),
                 "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\"/>\n", box.x,
                 box.y, box.width, box.height, colour);
}

void Canvas::begin(std::string_view title) {
  fmt::format_to(std::back_inserter(body_), "<g><title>{}</title>\n", escaped(title));
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
