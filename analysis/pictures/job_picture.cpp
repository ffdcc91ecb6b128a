#include "analysis/pictures/job_picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::topology {
namespace {

constexpr double margin = 24;

/// Of the letters that sentences have, most of which are narrow.
double sentence_width(std::string_view text, double size) {
  return text_width(text, size) * 0.9;
}

constexpr std::string_view style =
    "text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#2b2f36}\n"
    ".head{font-size:20px;font-weight:600}.sub{font-size:12px;fill:#6b7280}\n"
    ".name{font-size:12.5px;font-weight:600}.title{font-size:10.5px;font-weight:600;fill:#3f4652}\n"
    ".device{font-size:10px;fill:#2f6b41}.small{font-size:9.5px;fill:#6b7280}.rank{font-size:11px;font-weight:600}\n"
    ".title,.device{paint-order:stroke;stroke:#ffffff;stroke-width:2px}\n"
    ".host{fill:#f7f8fa;stroke:#7f8ba0;stroke-width:1.5}.counted{fill:#fcfcfa;stroke:#7f8ba0;stroke-dasharray:6 4}\n"
    ".package{fill:#eaeef5;stroke:#aab4c5;stroke-width:1.2}.numa{fill:#ffffff;stroke:#c5cddb}\n"
    ".shared{fill:#f4f1fa;stroke:#a99bc9}.gpu{fill:#e4f4e6;stroke:#3c9a55}.place{fill:none}\n"
    ".nic{fill:#fdf1dc;stroke:#d49a32}.chip{fill:#ffffff;stroke:#4a7fd0;stroke-width:1.6}\n"
    ".good{fill:#e4f4e6;stroke:#3c9a55}.bad{fill:#fde7e2;stroke:#c9472f}\n"
    ".good-text{font-size:11px;fill:#2f6b41}.bad-text{font-size:11px;fill:#a3331d}\n";

void draw_part(Canvas& canvas, const JobPart& part, Point at) {
  canvas.rectangle({at.x, at.y, part.box.width, part.box.height}, part.style == "host" ? 10 : 6, part.style);
  for (const JobPart& inner : part.parts) draw_part(canvas, inner, {at.x + inner.box.x, at.y + inner.box.y});
  for (const JobCell& cell : part.cells)
    if (!cell.name.empty())
      canvas.rectangle({at.x + cell.box.x, at.y + cell.box.y, cell.box.width, cell.box.height}, 5, "gpu");
  for (std::size_t i = 0; i < part.nics.size(); ++i) {
    canvas.begin(part.nics[i]);
    canvas.rectangle({at.x + part.nic_corner.x + 12 * static_cast<double>(i), at.y + part.nic_corner.y, 9, 9}, 2,
                     "nic");
    canvas.end();
  }
}

void draw_words(Canvas& canvas, const JobPart& part, Point at) {
  if (!part.title.empty()) canvas.text({at.x + 8, at.y + 13}, part.title, "title");
  for (const JobPart& inner : part.parts) draw_words(canvas, inner, {at.x + inner.box.x, at.y + inner.box.y});
  for (const JobCell& cell : part.cells)
    if (!cell.name.empty())
      canvas.text({at.x + cell.box.x + cell.box.width / 2, at.y + cell.box.y + 11}, cell.name, "device", "middle");
  if (part.nics.empty()) return;
  const std::string said =
      part.nics.size() == 1 ? shortened(part.nics[0], 16) : fmt::format("{} NICs", part.nics.size());
  canvas.text(
      {at.x + part.nic_corner.x + 12 * static_cast<double>(part.nics.size()) + 2, at.y + part.nic_corner.y + 8.5}, said,
      "small");
}

/// How often the ring comes and goes, in the corner of a host.
void draw_badge(Canvas& canvas, const Box& host, int entries) {
  const std::string said = fmt::format("in {} · out {}", entries, entries);
  const double width = static_cast<double>(said.size() - 1) * 5.6 + 12;
  const bool good = entries <= 1;
  canvas.rectangle({host.x + host.width - width - 6, host.y + 6, width, 17}, 8, good ? "good" : "bad");
  canvas.text({host.x + host.width - width / 2 - 6, host.y + 18.5}, said, good ? "good-text" : "bad-text", "middle");
}

void draw_counted(Canvas& canvas, const Job& job, const JobHostBox& box) {
  const Box& host = box.whole.box;
  const Point middle = host.middle();
  canvas.text({middle.x, middle.y - 6}, fmt::format("{} more hosts", box.counted), "name", "middle");
  const std::string like = box.like < 0 ? std::string("of several kinds")
                                        : "like " + shortened(job.hosts[static_cast<std::size_t>(box.like)].name, 24);
  canvas.text({middle.x, middle.y + 11}, like, "sub", "middle");
}

std::string summary(const Job& job) {
  std::string text;
  for (std::size_t level = 0; level < job.levels.size(); ++level)
    text += (level == 0 ? "Levels: " : " › ") + level_name(job, level);
  if (job.levels.empty()) text = "Levels: none";
  const std::string from = job.origin.substr(job.origin.rfind('/') + 1);
  if (!from.empty() && from != "live") text += " · on " + shortened(from, 60);
  return text;
}

double draw_legend(Canvas& canvas, Point at, bool several) {
  const double start = at.x;
  const auto entry = [&](std::string_view what, std::string_view said) {
    if (what.starts_with('#'))
      canvas.swatch({at.x, at.y - 6, 18, 3}, what);
    else
      canvas.rectangle({at.x + 3, at.y - 10, 12, 11}, 3, what);
    canvas.text({at.x + 24, at.y}, said, "sub");
    at.x += 24 + sentence_width(said, 12) + 16;
  };
  entry("chip", "rank");
  entry("gpu", "GPU");
  entry("nic", "NIC");
  entry("#4a7fd0", "the ring inside a host");
  if (several) entry("#b8408a", "between hosts");
  return at.x - start;
}

/// Boxes, without ranks and words.
void draw_hosts(Canvas& canvas, const JobLayout& layout) {
  for (const JobHostBox& box : layout.hosts) {
    if (box.counted > 0)
      canvas.rectangle(box.whole.box, 10, "counted");
    else
      draw_part(canvas, box.whole, {box.whole.box.x, box.whole.box.y});
  }
}

/// And the words.
void draw_ranks(Canvas& canvas, const Job& job, const JobLayout& layout) {
  for (std::size_t rank = 0; rank < layout.chips.size(); ++rank) {
    const Box& chip = layout.chips[rank];
    if (chip.width == 0) continue;
    canvas.begin(
        fmt::format("rank {} on {}", rank, job.hosts[static_cast<std::size_t>(job.locations[rank].host)].name));
    canvas.rectangle(chip, chip.height / 2, "chip");
    canvas.text({chip.middle().x, chip.middle().y + 4}, std::to_string(rank), "rank", "middle");
    canvas.end();
  }
  const std::vector<int> entries = entries_of(job);
  for (const JobHostBox& box : layout.hosts) {
    if (box.counted > 0) {
      draw_counted(canvas, job, box);
      continue;
    }
    const Box& host = box.whole.box;
    draw_words(canvas, box.whole, {host.x, host.y});
    const auto letters = static_cast<std::size_t>(std::max(4.0, (host.width - 100) / 7.5));
    canvas.text({host.x + 10, host.y + 18.5}, shortened(job.hosts[static_cast<std::size_t>(box.host)].name, letters),
                "name");
    if (job.hosts.size() > 1) draw_badge(canvas, host, entries[static_cast<std::size_t>(box.host)]);
  }
}

}  // namespace

std::string job_picture(const Job& job) {
  Canvas canvas;
  const std::string named =
      fmt::format("{} rank{} on {} host{}", job.locations.size(), job.locations.size() == 1 ? "" : "s",
                  job.hosts.size(), job.hosts.size() == 1 ? "" : "s");
  const std::string levels = summary(job), verdict = ring_verdict(job);
  const bool several = job.hosts.size() > 1;
  const std::vector<int> entries = entries_of(job);
  const bool good = std::ranges::all_of(entries, [](int times) { return times <= 1; });
  canvas.text({margin, margin + 16}, named, "head");
  canvas.text({margin, margin + 36}, levels, "sub");
  canvas.rectangle({margin, margin + 46, sentence_width(verdict, 11) + 20, 20}, 10, good ? "good" : "bad");
  canvas.text({margin + 10, margin + 60}, verdict, good ? "good-text" : "bad-text");
  const double legend = draw_legend(canvas, {margin, margin + 86}, several);
  const JobLayout layout = job_layout(job, {several ? 0 : margin, margin + (several ? 92 : 104)});
  draw_hosts(canvas, layout);
  draw_ring(canvas, job, layout);
  draw_ranks(canvas, job, layout);
  const double words = std::max({legend, sentence_width(levels, 12), sentence_width(verdict, 11) + 20, 300.0});
  return canvas.finish(std::max(words + 2 * margin, layout.area.x + layout.area.width + (several ? 0 : margin)),
                       layout.area.y + layout.area.height + (several ? 0 : margin), style, named);
}

}  // namespace tutti::topology
