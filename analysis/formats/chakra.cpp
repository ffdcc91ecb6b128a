#include "analysis/formats/chakra.h"

#include <fmt/format.h>

#include <cstdint>

namespace tutti::formats {
namespace {

/// Builds a protobuf message. Field numbers are those of et_def.proto.
class Message {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

namespace attribute {
constexpr int name = 1, int32 = 7, int64 = 9, boolean = 27, string = 29;
}
namespace node_field {
constexpr int id = 1, name = 2, type = 3, data_deps = 5, duration_micros = 7, attr = 10;
}
namespace node_type {
constexpr std::uint64_t work = 4, send = 5, receive = 6;
}

void add_number(Message& node, int kind, std::string_view name, std::uint64_t value) {
  Message one;
  one.bytes(attribute::name, name);
  one.number(kind, value);
  node.bytes(node_field::attr, one.text());
}

std::string metadata(const Schedule& schedule, std::string_view name) {
  Message all;
  all.bytes(1, "0.0.4");
  for (const auto& [key, value] :
       {std::pair{std::string_view("algorithm"), name}, {"collective", tutti::name(schedule.collective())}}) {
    Message one;
    one.bytes(attribute::name, key);
    one.bytes(attribute::string, value);
    all.bytes(2, one.text());
  }
  return all.text();
}

std::string encoded(const TrafficNode& node, int id) {
  const bool sends = node.kind == TrafficNode::Kind::send, works = node.kind == TrafficNode::Kind::work;
  const std::uint64_t type = works ? node_type::work : sends ? node_type::send : node_type::receive;
  Message message;
  if (id != 0) message.number(node_field::id, static_cast<std::uint64_t>(id));
  message.bytes(
      node_field::name,
      fmt::format("{}_step{}", works ? "work" : fmt::format("{}{}", sends ? "send_to" : "receive_from", node.peer),
                  node.step));
  message.number(node_field::type, type);
  if (!node.after.empty()) {
    Message ids;
    for (const int before : node.after) ids.varint(static_cast<std::uint64_t>(before));
    message.bytes(node_field::data_deps, ids.text());
  }
  if (works) message.number(node_field::duration_micros, (node.work_ns + 999) / 1000);
  add_number(message, attribute::boolean, "is_cpu_op", 0);
  if (!works) {
    add_number(message, attribute::int64, "comm_type", type);
    add_number(message, attribute::int64, "comm_size", node.bytes);
    add_number(message, attribute::int32, sends ? "comm_dst" : "comm_src", static_cast<std::uint64_t>(node.peer));
    add_number(message, attribute::int32, "comm_tag", static_cast<std::uint64_t>(node.step));
  }
  return message.text();
}

void append(std::string& file, const std::string& message) {
  Message length;
  length.varint(message.size());
  file += length.text();
  file += message;
}

}  // namespace

Result<std::vector<std::string>> export_chakra(const Schedule& schedule, const TrafficSize& size,
                                               std::string_view name) {
  const auto graphs = TUTTI_TRY(traffic(schedule, size));
  std::vector<std::string> files;
  for (const std::vector<TrafficNode>& nodes : graphs) {
    std::string file;
    append(file, metadata(schedule, name));
    for (std::size_t i = 0; i < nodes.size(); ++i) append(file, encoded(nodes[i], static_cast<int>(i)));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace tutti::formats
