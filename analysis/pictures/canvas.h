// Shapes of a picture, written as SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::topology {

struct Point {
  double x = 0, y = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  Point middle() const { return {x + width / 2, y + height / 2}; }
};

/// Shapes are painted in the order in which they are added; lengths are in pixels. A class names a style of the
/// picture's style sheet.
class Canvas {
 public:
  void rectangle(const Box& box, double corner, std::string_view style);
  void line(Point from, Point to, double width, std::string_view style);
  /// `anchor`: start, middle or end.
  void text(Point at, std::string_view text, std::string_view style, std::string_view anchor = "start");
  /// A coloured line with an arrowhead at its middle.
  void arrow(const std::vector<Point>& points, double width, std::string_view colour, bool dashed);
  /// From `from` to `to`, bent towards `bend`, with an arrowhead at its middle.
  void curve(Point from, Point bend, Point to, double width, std::string_view colour);
  /// A line through right angles, its corners rounded, with an arrowhead at the middle of its longest piece.
  void route(const std::vector<Point>& way, double width, std::string_view colour);
  void swatch(const Box& box, std::string_view colour);
  /// A tooltip for everything that is painted until `end`.
  void begin(std::string_view title);
  void end();

  /// The whole picture; `style` is its style sheet.
  std::string finish(double width, double height, std::string_view style, std::string_view title) const;

 private:
  void arrowhead(Point middle, Point direction, double size, std::string_view colour);
  std::string body_;
};

/// Approximate width of a text at this font size.
double text_width(std::string_view text, double size);

/// At most `letters` letters; longer text ends with an ellipsis.
std::string shortened(std::string_view text, std::size_t letters);

}  // namespace tutti::topology
